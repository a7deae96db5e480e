/* See passes/quantize/output_errors.h. */
#include "passes/quantize/output_errors.h"
#include "passes/quantize/observe.h"

#include <math.h>

static const double LEVEL_MOST = 100; /* dB */

double error_level(double error, double energy) {
    double level = 10 * log10(error / energy); /* NaN where neither is there, or both infinite */
    return isnan(level) ? (error > 0 ? LEVEL_MOST : -LEVEL_MOST)
                        : fmax(fmin(level, LEVEL_MOST), -LEVEL_MOST);
}

Program *output_program(Module *m, PassContext *c, Arena *a, bool quantized) {
    ProgramOptions options = {.partial = true, .run_parts = runner_parts(), .arena = a};
    return quantized ? program_build(m, &options, c->d) : observe_reference(m, c, options);
}

bool output_programs_fit(Module *m, PassContext *c, size_t n, const char *what) {
    size_t each = 3 * module_const_bytes(m); /* as they come, rounded, and packed */
    if (each <= arena_left(m->arena) / n)
        return true;
    diag(c->d, DIAG_REMARK, LOC_NONE, "%s: -max-memory leaves too little for it", what);
    return false;
}

typedef struct Look {
    OutputWork *work;
    void *ctx;
    bool ok;
} Look;

static void do_work(void *ctx) {
    Look *l = ctx;
    l->ok = l->work(l->ctx);
}

bool output_look(Module *m, PassContext *c, const char *what, OutputWork *work, void *ctx) {
    Look l = {work, ctx, false};
    Diags *heard = m->diags, *told = c->d;
    Progress *progress = diags_progress(told);
    size_t level = progress_begin(progress, "outputs", 0);
    m->diags = c->d = diags_new(m->arena, NULL, false);
    diags_set_progress(c->d, progress);
    diags_record(c->d, true);
    bool lasted = arena_try(m->arena, do_work, &l);
    progress_end(progress, level);
    const char *error = diags_first_error(c->d);
    m->diags = heard;
    c->d = told;
    if (!lasted)
        diag(c->d, DIAG_REMARK, LOC_NONE, "%s: -max-memory leaves too little for it", what);
    else if (!l.ok && error)
        diag(c->d, DIAG_REMARK, LOC_NONE, "%s: %s", what, error);
    return lasted && l.ok;
}

/* Programs and what they run on; the float one is the first. */
typedef struct Side {
    const Program *p;
    Runner *run;
    Samples *s;
} Side;

static void add_errors(const Graph *g, const Side *reals, const Side *side, OutputErrors *to) {
    for (size_t i = 0; i < g->n_out; i++) {
        size_t n;
        const float *x = runner_output(reals->run, i), *y = runner_output(side->run, i);
        const Value *v = g->out[i];
        if (!x || !y || program_left_out(reals->p, v) || program_left_out(side->p, v) ||
            !type_count(v->type, &n) || n == 0 || v->type.elem != ELEM_FLOAT)
            continue;
        double sum = 0, energy = 0;
        for (size_t k = 0; k < n; k++)
            if (isfinite(x[k])) {
                energy += (double)x[k] * (double)x[k];
                sum += isfinite(y[k])
                           ? ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k])
                           : INFINITY;
            }
        if (to->dB) {
            to->dB[v->id] += energy / (double)n; /* error_level in the end */
            to->dB_each[v->id] += error_level(sum, energy);
        }
        to->error[v->id] += sum / (double)n;
        to->measured[v->id] = true;
    }
}

static void average(OutputErrors *e, uint32_t id, double n) {
    e->error[id] /= n;
    if (!e->dB)
        return;
    e->dB[id] = error_level(e->error[id], e->dB[id] / n);
    e->dB_each[id] /= n;
}

bool output_holds_back(size_t total) {
    return total >= 3 * OUTPUT_SAMPLES;
}

bool output_sample_chosen(size_t i, size_t most, size_t total) {
    return most >= total || (i + 1) * most / total > i * most / total;
}

static bool run_sample(const Side *sides, size_t n, Diags *d) {
    for (size_t k = 0; k < n; k++)
        if (!samples_load(sides[k].s, sides[k].run) || !runner_run(sides[k].run, d))
            return false;
    return true;
}

static bool skip_sample(const Side *sides, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (!samples_skip(sides[k].s))
            return false;
    return true;
}

bool output_errors(Module *m, PassContext *c, Arena *a, size_t most, const Program *reals,
                   OutputErrors *of, size_t n) {
    const Graph *g = m->graph;
    Side *sides = NEW_ARRAY(m->arena, Side, n + 1);
    bool ok = true;
    for (size_t k = 0; k <= n; k++) {
        const Program *p = k ? of[k - 1].p : reals;
        sides[k] = (Side){p, runner_new(a, p), pass_samples(m, c)};
        ok = ok && sides[k].s;
        for (size_t i = 0; k && i < g->n_out; i++) {
            of[k - 1].error[g->out[i]->id] = 0;
            of[k - 1].measured[g->out[i]->id] = false;
        }
    }
    size_t total = 0, seen = 0;
    ok = ok && samples_count(sides[0].s, &total);
    for (size_t i = 0; ok && i < total && seen < most; i++) {
        if (c->n_data && !output_sample_chosen(i, most, total)) {
            ok = skip_sample(sides, n + 1);
            continue;
        }
        ok = run_sample(sides, n + 1, m->diags);
        for (size_t k = 1; ok && k <= n; k++)
            add_errors(g, &sides[0], &sides[k], &of[k - 1]);
        seen++;
    }
    for (size_t k = 0; k <= n; k++) {
        ok = ok && samples_ok(sides[k].s);
        if (sides[k].s)
            samples_close(sides[k].s);
        for (size_t i = 0; k && i < g->n_out; i++)
            average(&of[k - 1], g->out[i]->id, seen ? (double)seen : 1);
    }
    return ok;
}
