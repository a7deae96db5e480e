/* What the values of the model that was read are: ranges and histograms of some samples, and how
 * many numbers lie beyond what the integers can hold. */
#include "compiler/report_parts.h"
#include "exec/kept.h"

#include <math.h>

enum { BINS = 40 };

typedef struct Seen {
    const Value *v; /* of the model that was read */
    ReportValue *of;
    size_t count; /* elements in a sample */
    double min, max;
    double low, high; /* the least and the largest number that the integers hold */
    uint64_t n, below, above, bins[BINS];
} Seen;

typedef struct Looking {
    Seen **seen; /* by Value.id; NULL: nobody asks */
    uint32_t n;
    bool counts; /* ranges are known: count into bins */
    double *x;
} Looking;

static void widen(Seen *s, const double *x) {
    for (size_t i = 0; i < s->count; i++)
        if (isfinite(x[i])) {
            s->min = fmin(s->min, x[i]);
            s->max = fmax(s->max, x[i]);
        }
}

static void count(Seen *s, const double *x) {
    double width = (s->max - s->min) / (double)BINS;
    for (size_t i = 0; i < s->count; i++) {
        if (!isfinite(x[i]))
            continue;
        size_t bin = width > 0 ? (size_t)((x[i] - s->min) / width) : 0;
        s->bins[bin < BINS ? bin : BINS - 1]++;
        s->n++;
        s->below += x[i] < s->low;
        s->above += x[i] > s->high;
    }
}

static void look(void *ctx, const Value *v, const void *data) {
    Looking *l = ctx;
    Seen *s = v->id < l->n ? l->seen[v->id] : NULL;
    if (!s)
        return;
    type_reals(v->type, data, s->count, l->x);
    (l->counts ? count : widen)(s, l->x);
}

/* Half a step beyond the last integer is rounded to it, and not cut off. */
static void find_ends(Seen *s, const Quant *q) {
    s->low = -INFINITY;
    s->high = INFINITY;
    if (!q || !quant_is_known(q) || !quant_is_per_tensor(q) || !quant_is_integers(q))
        return;
    double scale = (double)quant_scale(q, 0), zp = (double)quant_zp(q, 0);
    s->low = ((double)quant_lo(q) - zp - 0.5) * scale;
    s->high = ((double)quant_hi(q) - zp + 0.5) * scale;
}

typedef struct Choosing {
    Report *r;
    Looking *l;
    size_t most;
} Choosing;

static void choose(Value *v, void *ctx) {
    Choosing *c = ctx;
    ReportValue *x = map_get(c->r->by_name, v->name);
    size_t n;
    if (v->graph != v->graph->module->graph || v->kind == VALUE_CONST || v->id >= c->l->n || !x ||
        !x->json || v->type.kind != TYPE_TENSOR || v->type.elem == ELEM_STRING ||
        !type_count(v->type, &n) || !elem_is_float(type_real_elem(v->type)))
        return;
    Seen *s = NEW(c->r->a, Seen);
    *s = (Seen){.v = v, .of = x, .count = n, .min = INFINITY, .max = -INFINITY};
    find_ends(s, x->quant);
    c->l->seen[v->id] = s;
    c->most = n > c->most ? n : c->most;
}

static bool run_some(const Program *p, Samples *s, KeptRun *some, Looking *l, Diags *d) {
    Runner *r = runner_new(p->module->arena, p);
    runner_observe(r, look, l);
    for (size_t i = 0; i < some->total; i++) {
        bool wanted = kept_place(some, i) >= 0;
        if (!(wanted ? samples_load(s, r) && runner_run(r, d) : samples_skip(s)))
            return false;
    }
    return true;
}

static void put_seen(const Seen *s) {
    if (!s->n)
        return;
    json_t *h = json_object(), *counts = json_array();
    for (size_t i = 0; i < BINS; i++)
        json_array_append_new(counts, json_integer((json_int_t)s->bins[i]));
    report_real(h, "low", s->min);
    report_real(h, "high", s->max);
    json_object_set_new(h, "counts", counts);
    json_object_set_new(h, "elements", json_integer((json_int_t)s->n));
    json_object_set_new(h, "clipped_below", json_integer((json_int_t)s->below));
    json_object_set_new(h, "clipped_above", json_integer((json_int_t)s->above));
    json_object_set_new(s->of->json, "histogram", h);
}

static bool look_twice(Report *r, Looking *l, Samples *s, const Program *p) {
    KeptRun some = {0};
    if (!samples_count(s, &some.total))
        return false;
    some.n = some.total < KEPT_SAMPLES ? some.total : KEPT_SAMPLES;
    json_object_set_new(r->root, "samples_of_histograms", report_count(some.n));
    if (!run_some(p, s, &some, l, r->s->d))
        return false;
    l->counts = true;
    return samples_rewind(s) && run_some(p, s, &some, l, r->s->d);
}

void report_seen(Report *r) {
    if (!r->from)
        return;
    Looking l = {.n = r->from->n_values, .seen = NEW_ARRAY(r->a, Seen *, r->from->n_values)};
    Choosing c = {r, &l, 0};
    module_each_value(r->from, choose, &c);
    l.x = NEW_ARRAY(r->a, double, c.most);
    ProgramOptions o = {.observed = true, .partial = true, .run_parts = runner_parts()};
    const TextList *data = r->s->o.input.n ? &r->s->o.input : &r->s->o.calib;
    const Program *p = program_build(r->from, &o, r->s->d);
    Samples *s = p ? samples_open(r->a, r->from, data->items, data->n, r->s->d) : NULL;
    bool ok = s && look_twice(r, &l, s, p);
    if (s)
        samples_close(s);
    for (uint32_t i = 0; ok && i < l.n; i++)
        if (l.seen[i])
            put_seen(l.seen[i]);
}
