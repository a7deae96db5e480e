/* Statistics: making them, and joining those of two calibrations. See exec/calibrate.h. */
#include <math.h>

#include "exec/calibrate.h"

static const float *one_float(Arena *a, double x) {
    float f = (float)x;
    return arena_copy(a, &f, sizeof f);
}

Stat *calib_stat(Arena *a, double min, double max, double avg, double std, int64_t count) {
    Stat *s = NEW(a, Stat);
    *s = (Stat){.n = 1, .count = count};
    s->min = one_float(a, min);
    s->max = one_float(a, max);
    s->avg = one_float(a, avg);
    s->std = one_float(a, std);
    return s;
}

static double join(const float *x, const float *y, bool larger) {
    double a = x ? (double)*x : NAN, b = y ? (double)*y : NAN;
    return larger ? fmax(a, b) : fmin(a, b);
}

/* Weighted by samples; where a count is not known, both weigh the same. */
static void merge_stat(Arena *a, Value *v, const Stat *from) {
    const Stat *to = v->stat;
    if (from->n != 1 || (to && to->n != 1))
        return; /* per axis: not made by calibration */
    if (!to) {
        v->stat = calib_stat(a, join(from->min, NULL, false), join(from->max, NULL, true),
                             join(from->avg, NULL, true), join(from->std, NULL, true), from->count);
        return;
    }
    bool known = to->count > 0 && from->count > 0;
    double n = known ? (double)to->count : 1, k = known ? (double)from->count : 1;
    double avg_to = to->avg ? (double)*to->avg : 0, avg_from = from->avg ? (double)*from->avg : 0;
    double std_to = to->std ? (double)*to->std : 0, std_from = from->std ? (double)*from->std : 0;
    double delta = avg_from - avg_to, avg = avg_to + delta * k / (n + k);
    double var =
        (std_to * std_to * n + std_from * std_from * k + delta * delta * n * k / (n + k)) / (n + k);
    v->stat = calib_stat(a, join(to->min, from->min, false), join(to->max, from->max, true), avg,
                         sqrt(var), known ? to->count + from->count : 0);
}

typedef struct Merge {
    Map *by_name; /* of Value, in the target */
    Arena *arena;
    Diags *diags;
    bool collecting, ok;
} Merge;

static void merge_value(Merge *m, Value *v) {
    if (m->collecting) {
        map_set(m->by_name, v->name, v);
        return;
    }
    if (!v->stat)
        return;
    Value *to = map_get(m->by_name, v->name);
    if (to)
        merge_stat(m->arena, to, v->stat);
    else
        m->ok = diag_error(m->diags, v->loc, "value %s is not in the first model",
                           diag_name(m->diags, v->name));
}

static void merge_graph(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_in; i++)
        merge_value(ctx, g->in[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            merge_value(ctx, n->out[i]);
}

bool stats_merge(Module *to, const Module *from, Diags *d) {
    Merge m = {.by_name = map_new(to->arena), .arena = to->arena, .diags = d, .ok = true};
    m.collecting = true;
    module_each_graph(to, merge_graph, &m);
    m.collecting = false;
    module_each_graph((Module *)(uintptr_t)from, merge_graph, &m);
    return m.ok;
}
