/* See exec/compare.h. */
#include <math.h>

#include "exec/compare.h"

typedef struct Sums { /* of one pair, over everything seen */
    double xx, yy, xy, dd, max_abs;
    size_t count;
} Sums;

typedef struct Side {
    Program *program;
    Runner *runner;
    Samples *samples;
} Side;

static void add(Sums *s, const double *x, const double *y, size_t n) {
    s->count += n;
    for (size_t i = 0; i < n; i++) {
        bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
        double d = same ? 0 : fabs(x[i] - y[i]);
        if (isnan(d) || d > s->max_abs) /* once NaN, always NaN: no d is larger */
            s->max_abs = d;
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        s->xx += x[i] * x[i];
        s->yy += y[i] * y[i];
        s->xy += x[i] * y[i];
        s->dd += d * d;
    }
}

static void finish(CompareRow *row, const Sums *s) {
    row->count = s->count;
    row->max_abs = s->max_abs;
    if (s->dd == 0)
        row->sqnr = isnan(s->max_abs) || isinf(s->max_abs) ? -INFINITY : INFINITY;
    else
        row->sqnr = s->xx == 0 ? -INFINITY : 10 * log10(s->xx / s->dd);
    if (s->xx == 0 || s->yy == 0)
        row->cosine = s->xx == s->yy ? 1 : 0;
    else
        row->cosine = s->xy / (sqrt(s->xx) * sqrt(s->yy));
}

/* ---- pairing ---- */

static bool same_count(const Value *x, const Value *y) {
    size_t n, k;
    return type_count(x->type, &n) && type_count(y->type, &k) && n == k;
}

static Map *values_by_name(Arena *a, const Program *p) {
    Map *m = map_new(a);
    for (size_t i = 0; i < p->n_buffers; i++) {
        const Value *v = p->buffers[i].value;
        if (v && v->kind == VALUE_NODE && p->value_buffer[v->id] == (int)i)
            map_set(m, v->name, (void *)(uintptr_t)v);
    }
    return m;
}

static bool is_output(const Graph *g, const Value *v) {
    for (size_t i = 0; i < g->n_out; i++)
        if (g->out[i] == v)
            return true;
    return false;
}

static bool pair_outputs(const Module *a, const Module *b, Comparison *out, Diags *d) {
    if (a->graph->n_out != b->graph->n_out)
        return diag_error(d, LOC_NONE, "the first model has %zu outputs, the second %zu",
                          a->graph->n_out, b->graph->n_out);
    for (size_t i = 0; i < a->graph->n_out; i++) {
        const Value *x = a->graph->out[i], *y = b->graph->out[i];
        for (size_t k = 0; k < b->graph->n_out; k++)
            if (str_eq(b->graph->out[k]->name, x->name))
                y = b->graph->out[k];
        if (!same_count(x, y))
            return diag_error(d, x->loc, "output %s has another shape in the second model",
                              diag_name(d, x->name));
        out->rows[out->n++] = (CompareRow){.name = x->name, .a = x, .b = y, .is_output = true};
    }
    out->n_outputs = a->graph->n_out;
    return true;
}

static bool pair_values(const Program *a, const Program *b, Comparison *out, Diags *d) {
    Arena *arena = a->module->arena;
    Map *names = values_by_name(arena, b);
    out->rows = NEW_ARRAY(arena, CompareRow, a->n_buffers + a->n_outputs);
    for (size_t i = 0; i < a->n_buffers; i++) {
        const Value *x = a->buffers[i].value;
        if (!x || x->kind != VALUE_NODE || a->value_buffer[x->id] != (int)i ||
            is_output(a->module->graph, x))
            continue;
        const Value *y = map_get(names, x->name);
        if (y && same_count(x, y))
            out->rows[out->n++] = (CompareRow){.name = x->name, .a = x, .b = y};
    }
    return pair_outputs(a->module, b->module, out, d);
}

/* ---- running ---- */

static bool open_side(Side *s, Module *m, const char *const *paths, size_t n, size_t random,
                      const ProgramOptions *o, Diags *d) {
    ProgramOptions all = o ? *o : (ProgramOptions){0};
    all.keep_all = true;
    s->program = program_build(m, &all, d);
    if (!s->program)
        return false;
    s->runner = runner_new(m->arena, s->program);
    s->samples = n ? samples_open(m->arena, m, paths, n, d) : samples_random(m->arena, m, random);
    return s->samples != NULL;
}

static void compare_sample(const Side *a, const Side *b, const Comparison *c, Sums *sums, double *x,
                           double *y) {
    for (size_t i = 0; i < c->n; i++) {
        const CompareRow *row = &c->rows[i];
        size_t n;
        if (!runner_computed(a->runner, row->a) || !runner_computed(b->runner, row->b) ||
            !type_count(row->a->type, &n))
            continue;
        value_reals(row->a, runner_value(a->runner, row->a), n, x);
        value_reals(row->b, runner_value(b->runner, row->b), n, y);
        add(&sums[i], x, y, n);
    }
}

static size_t largest(const Comparison *c) {
    size_t most = 0, n;
    for (size_t i = 0; i < c->n; i++)
        if (type_count(c->rows[i].a->type, &n) && n > most)
            most = n;
    return most;
}

static bool run_both(const Side *a, const Side *b, Comparison *c, Arena *arena) {
    Sums *sums = NEW_ARRAY(arena, Sums, c->n);
    size_t most = largest(c);
    double *x = NEW_ARRAY(arena, double, most), *y = NEW_ARRAY(arena, double, most);
    while (samples_load(a->samples, a->runner) && samples_load(b->samples, b->runner)) {
        runner_run(a->runner);
        runner_run(b->runner);
        compare_sample(a, b, c, sums, x, y);
        c->samples++;
    }
    size_t kept = 0; /* a value that never came up in both is not compared */
    for (size_t i = 0; i < c->n; i++)
        if (sums[i].count || c->rows[i].is_output) {
            finish(&c->rows[i], &sums[i]);
            c->rows[kept++] = c->rows[i];
        }
    c->n = kept;
    return samples_ok(a->samples) && samples_ok(b->samples);
}

bool compare_modules(Module *a, Module *b, const char *const *paths, size_t n_paths, size_t random,
                     const ProgramOptions *options_a, const ProgramOptions *options_b,
                     Comparison *out, Diags *d) {
    Side sa = {0}, sb = {0};
    *out = (Comparison){0};
    bool ok = open_side(&sa, a, paths, n_paths, random, options_a, d) &&
              open_side(&sb, b, paths, n_paths, random, options_b, d) &&
              pair_values(sa.program, sb.program, out, d) && run_both(&sa, &sb, out, a->arena);
    if (sa.samples)
        samples_close(sa.samples);
    if (sb.samples)
        samples_close(sb.samples);
    return ok;
}
