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

/* Joins the i-th entries of two lists that may be absent: NULL where either is. */
typedef double JoinFn(double x, double y);

static const float *join(Arena *a, const float *x, const float *y, size_t n, JoinFn *f) {
    if (!x || !y)
        return NULL;
    float *out = NEW_ARRAY(a, float, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)f((double)x[i], (double)y[i]);
    return out;
}

/* What the averages of two shards say of both, each weighing as much as it has seen. */
typedef struct Shards {
    const Stat *x, *y;
    double n, k; /* their weights */
} Shards;

static void join_moments(Arena *a, const Shards *s, Stat *out) {
    if (!s->x->avg || !s->y->avg)
        return; /* without averages, deviations of the two cannot be compared either */
    float *avg = NEW_ARRAY(a, float, out->n), *std = NEW_ARRAY(a, float, out->n);
    bool has_std = s->x->std && s->y->std;
    double n = s->n, k = s->k;
    for (size_t i = 0; i < out->n; i++) {
        double ax = (double)s->x->avg[i], ay = (double)s->y->avg[i], delta = ay - ax;
        avg[i] = (float)(ax + delta * k / (n + k));
        if (!has_std)
            continue;
        double sx = (double)s->x->std[i], sy = (double)s->y->std[i];
        std[i] =
            (float)sqrt((sx * sx * n + sy * sy * k + delta * delta * n * k / (n + k)) / (n + k));
    }
    out->avg = avg;
    out->std = has_std ? std : NULL;
}

static const float *copy(Arena *a, const float *x, size_t n) {
    return x ? arena_copy(a, x, n * sizeof *x) : NULL;
}

static Stat *copy_stat(Arena *a, const Stat *s) {
    Stat *out = NEW(a, Stat);
    *out = (Stat){.has_axis = s->has_axis, .axis = s->axis, .n = s->n, .count = s->count};
    out->min = copy(a, s->min, s->n);
    out->max = copy(a, s->max, s->n);
    out->avg = copy(a, s->avg, s->n);
    out->std = copy(a, s->std, s->n);
    calib_copy_kept(a, s, out);
    return out;
}

/* Weighted by samples; where a count is not known, both weigh the same. What both do not state, and
 * what is kept without being understood, is not stated of the whole. */
static Stat *merge_stats(Arena *a, const Stat *x, const Stat *y) {
    bool known = x->count > 0 && y->count > 0;
    Shards s = {x, y, known ? (double)x->count : 1, known ? (double)y->count : 1};
    Stat *out = NEW(a, Stat);
    *out = (Stat){.has_axis = x->has_axis, .axis = x->axis, .n = x->n, .loc = x->loc};
    out->count = known ? x->count + y->count : 0;
    out->min = join(a, x->min, y->min, x->n, fmin);
    out->max = join(a, x->max, y->max, x->n, fmax);
    join_moments(a, &s, out);
    calib_join(a, x, y, out);
    return out;
}

typedef struct Merge {
    Map *by_name; /* of Value, in the target */
    Arena *arena;
    Diags *diags;
    bool collecting, ok;
    size_t mixed; /* values whose statistics two methods made */
} Merge;

static Str method_of(const Stat *s) {
    for (size_t i = 0; i < s->n_attrs; i++)
        if (str_is(s->attrs[i].name, "method") && s->attrs[i].kind == ATTR_STRING)
            return s->attrs[i].v.s[0];
    return STR("minmax"); /* min and max are all there is to it */
}

/* Said once, of the first. */
static void check_method(Merge *m, const Value *v, const Stat *x) {
    Str was = method_of(x), is = method_of(v->stat);
    if (str_eq(was, is) || m->mixed++)
        return;
    diag_warning(m->diags, v->stat->loc,
                 "statistics of %s are by method %s here and %s in the first model; where methods "
                 "differ, the range is the wider of both",
                 diag_name(m->diags, v->name), diag_name(m->diags, is), diag_name(m->diags, was));
}

static void merge_value(Merge *m, Value *v) {
    if (m->collecting) {
        map_set(m->by_name, v->name, v);
        return;
    }
    if (!v->stat)
        return;
    Value *to = map_get(m->by_name, v->name);
    const Stat *x = to ? to->stat : NULL, *y = v->stat;
    if (!to)
        m->ok = diag_error(m->diags, v->loc, "value %s is not in the first model",
                           diag_name(m->diags, v->name));
    else if (!x)
        to->stat = copy_stat(m->arena, y);
    else if (x->n != y->n || x->has_axis != y->has_axis || (x->has_axis && x->axis != y->axis))
        m->ok = diag_error(m->diags, y->loc,
                           "statistics of %s are per index of another axis than in the first model",
                           diag_name(m->diags, v->name));
    else if (x->count > 0 && y->count > INT64_MAX - x->count)
        m->ok =
            diag_error(m->diags, y->loc,
                       "statistics of %s count more samples than 64 bits hold, with those of the "
                       "first model",
                       diag_name(m->diags, v->name));
    else {
        check_method(m, v, x);
        to->stat = merge_stats(m->arena, x, y);
    }
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
