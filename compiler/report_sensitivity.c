/* How sensitive the outputs of a model are to each value: how much they lose where that one alone
 * is rounded to its grid, and all others stay float. Each takes some runs of the model that was
 * read, so where the model is large only the values with the worst losses are tried; what is left
 * out depends on the model and not on the time that it takes. */
#include "compiler/report_parts.h"
#include "exec/compare.h"
#include "exec/kept.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 4 };
static const int64_t MOST_WORK = 3000000000; /* multiply-accumulates, all runs together */
static const int64_t WORK_OF_NODE = 20000;   /* as it takes time to bind and to call it */
static const int64_t WORK_OF_BUILT = 200000; /* and to build a program of it */

typedef struct Tried {
    Value *v; /* of the model that was read */
    ReportValue *of;
    size_t at; /* in the model */
} Tried;

typedef struct Trying {
    Report *r;
    Tried *tried;
    size_t n, cap;
    KeptRun *kept; /* what the outputs are where nothing is rounded */
    int64_t work;  /* of one run */
} Trying;

/* Outputs of the graph are what is measured; what lost nothing needs no trial. */
static void collect(Value *v, void *ctx) {
    Trying *t = ctx;
    ReportValue *x = map_get(t->r->by_name, v->name);
    const Quant *q = x ? x->quant : NULL;
    bool wanted = x && x->json && q && quant_is_known(q) && quant_is_per_tensor(q) &&
                  v->kind == VALUE_NODE && v->graph == v->graph->module->graph &&
                  v->type.kind == TYPE_TENSOR && v->type.elem == ELEM_FLOAT && !v->type.quant &&
                  isfinite(x->sqnr);
    Tried new = {v, x, t->n};
    if (wanted)
        ARENA_PUSH(t->r->a, t->tried, t->n, t->cap, new);
}

static int worst_first(const void *p, const void *q) {
    const Tried *x = p, *y = q;
    if (x->of->sqnr != y->of->sqnr)
        return x->of->sqnr < y->of->sqnr ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* ---- runs ---- */

typedef bool OnRun(Trying *t, int place, const ModelRun *r, void *ctx);

/* Of many programs none is known before it is built, in each run anew. */
static int64_t work_of(const Module *m, const Program *p) {
    return p ? p->macs + (int64_t)p->n_calls * WORK_OF_NODE : (int64_t)m->n_nodes * WORK_OF_BUILT;
}

static bool run_some(Trying *t, Arena *a, const ProgramOptions *o, OnRun *fn, void *ctx) {
    Report *r = t->r;
    Diags *mute = r->from->mute;
    const TextList *data = r->s->o.input.n ? &r->s->o.input : &r->s->o.calib;
    ModelRun *run = model_run_new(a, r->from, o, mute);
    Samples *s = run ? samples_open(a, r->from, data->items, data->n, mute) : NULL;
    if (!s)
        return false;
    t->work = work_of(r->from, run->program);
    bool ok = samples_count(s, &t->kept->total);
    t->kept->n = t->kept->total < SAMPLES ? t->kept->total : SAMPLES;
    for (size_t i = 0; ok && i < t->kept->total; i++) {
        int place = kept_place(t->kept, i);
        ok = place < 0 ? samples_skip(s) : model_run_load(run, s) && model_run_sample(run, mute);
        ok = ok && (place < 0 || fn(t, place, run, ctx));
    }
    samples_close(s);
    model_run_free(run);
    return ok;
}

static bool keep(Trying *t, int place, const ModelRun *r, void *ctx) {
    (void)ctx;
    kept_outputs(t->kept, place, r);
    return true;
}

typedef struct Score {
    ErrorSums *sums; /* by output */
    double *x, *y;
} Score;

static bool add_errors(Trying *t, int place, const ModelRun *r, void *ctx) {
    Score *score = ctx;
    const Graph *g = t->r->from->graph;
    for (size_t i = 0; i < g->n_out; i++) {
        const KeptValue *was = t->kept->outputs[i];
        Type now;
        const void *data = was ? model_run_value(r, g->out[i], &now) : NULL;
        if (!data || !kept_fits(was, place, now))
            continue;
        kept_load(was, place, score->x);
        kept_pick(t->kept, was, place, now, data, score->y);
        error_add(&score->sums[i], score->x, score->y, was->samples[place].take);
    }
    return true;
}

/* ---- one value ---- */

/* The worst output; NAN where it could not be told. */
static double sqnr_where_rounded(Trying *t, const Tried *x) {
    Arena *a = arena_scratch(t->r->a);
    const Graph *g = t->r->from->graph;
    Score score = {NEW_ARRAY(a, ErrorSums, g->n_out), NEW_ARRAY(a, double, KEPT_MOST),
                   NEW_ARRAY(a, double, KEPT_MOST)};
    ProgramOptions o = {.partial = true, .run_parts = runner_parts()};
    Type was = x->v->type;
    double worst = NAN;
    x->v->type = type_tilde(was, x->of->quant);
    bool ok = run_some(t, a, &o, add_errors, &score);
    x->v->type = was;
    for (size_t i = 0; ok && i < g->n_out; i++)
        if (score.sums[i].count)
            worst = fmin(worst, error_sqnr(&score.sums[i]));
    arena_free(a);
    return worst;
}

static void put(json_t *to, double sqnr) {
    const json_t *before = json_object_get(to, "sensitivity_db");
    if (!before || sqnr < json_real_value(before))
        report_real(to, "sensitivity_db", sqnr);
}

static void try_value(Trying *t, const Tried *x) {
    double sqnr = sqnr_where_rounded(t, x);
    put(x->of->json, sqnr);
    if (x->of->maker >= 0)
        put(t->r->layers[x->of->maker]->json, sqnr);
}

void report_sensitivity(Report *r) {
    if (!r->from)
        return;
    Trying t = {.r = r, .kept = kept_new(r->from, SAMPLES)};
    ProgramOptions o = {.partial = true, .run_parts = runner_parts()};
    module_each_value(r->from, collect, &t);
    if (!t.n || !run_some(&t, r->a, &o, keep, NULL))
        return;
    qsort(t.tried, t.n, sizeof *t.tried, worst_first);
    int64_t runs = MOST_WORK / (t.work * (int64_t)t.kept->n + 1);
    size_t most = runs < (int64_t)t.n ? (size_t)runs : t.n;
    json_object_set_new(r->root, "values_tried", report_count(most));
    for (size_t i = 0; i < most; i++)
        try_value(&t, &t.tried[i]);
}
