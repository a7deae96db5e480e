/* See exec/compare.h. */
#include <math.h>

#include "exec/compare.h"
#include "exec/sample_files.h"
#include "ir/ops/op.h"

typedef struct Side {
    Program *program;
    Runner *runner;
    Samples *samples;
} Side;

void error_add(ErrorSums *s, const double *x, const double *y, size_t n) {
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

double error_sqnr(const ErrorSums *s) {
    if (s->dd == 0)
        return isnan(s->max_abs) || isinf(s->max_abs) ? -INFINITY : INFINITY;
    return s->xx == 0 ? -INFINITY : 10 * log10(s->xx / s->dd);
}

void compare_finish(CompareRow *row, const ErrorSums *s) {
    row->count = s->count;
    row->max_abs = s->max_abs;
    row->sqnr = error_sqnr(s);
    row->power = s->count ? s->xx / (double)s->count : 0;
    if (s->xx == 0 || s->yy == 0)
        row->cosine = s->xx == s->yy ? 1 : 0;
    else
        row->cosine = s->xy / (sqrt(s->xx) * sqrt(s->yy));
}

bool is_cut_by_clamp(const Uses *uses, const Value *v) {
    const Use *use;
    if (!v->type.quant || uses_of(uses, v, &use) != 1 || !use->node || !use->node->def)
        return false;
    const Node *n = use->node;
    return n->def->quant.kind == QUANT_CLAMP && n->out[0] && n->out[0]->type.quant &&
           quant_equal(n->out[0]->type.quant, v->type.quant);
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

/* Of Value, by name: the first of those that share one. */
static Map *outputs_by_name(Arena *a, const Graph *g) {
    Map *m = map_new(a);
    for (size_t i = g->n_out; i-- > 0;)
        map_set(m, g->out[i]->name, g->out[i]);
    return m;
}

/* Outputs that the first program leaves out are left out here. */
static bool pair_outputs(const Program *p, const Program *q, Comparison *out, Diags *d) {
    const Module *a = p->module, *b = q->module;
    Map *namesakes = outputs_by_name(a->arena, b->graph);
    if (a->graph->n_out != b->graph->n_out)
        return diag_error(d, LOC_NONE, "the first model has %zu outputs, the second %zu",
                          a->graph->n_out, b->graph->n_out);
    for (size_t i = 0; i < a->graph->n_out; i++) {
        const Value *x = a->graph->out[i], *y = map_get(namesakes, x->name);
        if (!y)
            y = b->graph->out[i];
        if (program_left_out(p, x))
            continue;
        if (program_left_out(q, y))
            return diag_error(d, x->loc, "output %s cannot be computed in the second model",
                              diag_name(d, x->name));
        if (!same_count(x, y))
            return diag_error(d, x->loc, "output %s has another shape in the second model",
                              diag_name(d, x->name));
        out->rows[out->n++] = (CompareRow){.name = x->name, .a = x, .b = y, .is_output = true};
    }
    return true;
}

/* By value id: what a node reads that is left out. */
static const bool *read_by_left_out(Arena *a, const Program *p) {
    bool *read = NEW_ARRAY(a, bool, p->module->n_values);
    FOR_NODES(n, p->module->graph)
    for (size_t i = 0; p->left_out && p->left_out->why[n->id] && i < n->n_in; i++)
        if (n->in[i])
            read[n->in[i]->id] = true;
    return read;
}

static bool pair_values(const Program *a, const Program *b, Comparison *out, Diags *d) {
    Arena *arena = a->module->arena;
    Map *names = values_by_name(arena, b), *outputs = outputs_by_name(arena, a->module->graph);
    const bool *stands_in = read_by_left_out(arena, a);
    out->rows = NEW_ARRAY(arena, CompareRow, a->n_buffers + a->n_outputs);
    for (size_t i = 0; i < a->n_buffers; i++) {
        const Value *x = a->buffers[i].value;
        if (!x || x->kind != VALUE_NODE || a->value_buffer[x->id] != (int)i ||
            map_get(outputs, x->name) == x)
            continue;
        const Value *y = map_get(names, x->name);
        if (y && same_count(x, y))
            out->rows[out->n++] =
                (CompareRow){.name = x->name, .a = x, .b = y, .is_output = stands_in[x->id]};
    }
    return pair_outputs(a, b, out, d);
}

static bool is_rounded_const(const Value *v) {
    const Node *n = v ? v->def : NULL;
    const Value *from = n && n->n_in ? n->in[0] : v;
    return from && value_is_const(from) && from->type.kind == TYPE_TENSOR && from->type.quant;
}

static bool rounds(const Node *n) {
    const Value *x = n->n_in ? n->in[0] : NULL, *y = n->n_out ? n->out[0] : NULL;
    const Quant *to = y && y->type.kind == TYPE_TENSOR ? y->type.quant : NULL;
    bool moves =
        to && x && x->type.kind == TYPE_TENSOR && x->type.quant && quant_equal(x->type.quant, to);
    bool any = to && !moves;
    for (size_t i = 0; i < n->n_in; i++)
        any = any || is_rounded_const(n->in[i]);
    return any && y;
}

static const Value *find_unmeasured(const Program *q) {
    FOR_NODES(n, q->module->graph)
    if (q->left_out && q->left_out->why[n->id] && rounds(n))
        return n->out[0];
    return NULL;
}

/* ---- one sample for both ---- */

/* An input of the second model and the one of the first whose data it gets. */
typedef struct Twin {
    const Value *from, *to;
    size_t from_port, to_port;
    size_t count;
    float *reals; /* of `from` where that is quantized */
} Twin;

/* The graph inputs that need data, in order of port. */
static size_t open_inputs(const Graph *g, const Value **out) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data)
            out[n++] = g->in[i];
    return n;
}

static bool match_twin(Arena *arena, const Value *x, const Value *y, Twin *t, Diags *d) {
    t->from = x;
    t->to = y;
    type_count(x->type, &t->count);
    if (!same_count(x, y))
        return diag_error(d, x->loc, "input %s has another shape in the second model",
                          diag_name(d, x->name));
    bool quantized = type_is_quantized(x->type);
    if (!sample_convertible(y, quantized ? ELEM_FLOAT : x->type.elem))
        return diag_error(d, x->loc, "input %s is %s, in the second model %s",
                          diag_name(d, x->name), type_text(arena, x->type),
                          type_text(arena, y->type));
    if (quantized)
        t->reals = NEW_ARRAY(arena, float, t->count);
    return true;
}

/* Inputs pair up as values do: by name, and by position those that have no namesake. */
static bool match_inputs(const Module *a, const Module *b, Twin **twins, size_t *n, Diags *d) {
    Arena *arena = a->arena;
    const Value **x = NEW_ARRAY(arena, const Value *, a->graph->n_in),
                **y = NEW_ARRAY(arena, const Value *, b->graph->n_in);
    size_t n_x = open_inputs(a->graph, x);
    *n = open_inputs(b->graph, y);
    if (n_x != *n)
        return diag_error(d, LOC_NONE, "the first model has %zu inputs, the second %zu", n_x, *n);
    Map *ports = map_new(arena); /* from 1, as map_get says 0 for none */
    for (size_t i = 0; i < n_x; i++)
        map_set(ports, x[i]->name, (void *)(uintptr_t)(i + 1));
    *twins = NEW_ARRAY(arena, Twin, *n);
    for (size_t i = 0; i < *n; i++) {
        size_t port = (size_t)(uintptr_t)map_get(ports, y[i]->name);
        Twin t = {.from_port = port ? port - 1 : i, .to_port = i};
        if (!match_twin(arena, x[t.from_port], y[i], &t, d))
            return false;
        (*twins)[i] = t;
    }
    return true;
}

/* The sample that the first model has in its inputs, as the second takes it: the same integers
 * where both are quantized alike, else the real numbers they stand for. */
static bool pass_on(const Twin *t, Runner *from, Runner *to, Diags *d) {
    const uint8_t *src = runner_input(from, t->from_port);
    uint8_t *dst = runner_input(to, t->to_port);
    const Quant *q = t->from->type.quant;
    ElemType elem = t->from->type.elem;
    bool alike = type_is_quantized(t->to->type) && quant_equal(q, t->to->type.quant);
    if (!t->reals || alike)
        return sample_convert(t->to, elem, src, dst, t->count, d);
    int64_t dims[MAX_RANK];
    int rank = type_lengths(t->from->type, dims);
    for (size_t i = 0; i < t->count; i++) {
        size_t k = quant_index(q, rank, dims, i);
        t->reals[i] = (float)(elem_load_int(elem, src, i) - quant_zp(q, k)) * quant_scale(q, k);
    }
    return sample_convert(t->to, ELEM_FLOAT, (const uint8_t *)t->reals, dst, t->count, d);
}

/* ---- running ---- */

typedef struct Pair {
    Side a, b;
    bool shared; /* samples are made up, for a, and passed on to b */
    Twin *twins;
    size_t n_twins;
    Diags *diags;
    bool failed;
} Pair;

static bool load_both(Pair *p) {
    if (!samples_load(p->a.samples, p->a.runner))
        return false;
    if (!p->shared)
        return samples_load(p->b.samples, p->b.runner);
    for (size_t i = 0; i < p->n_twins && !p->failed; i++)
        p->failed = !pass_on(&p->twins[i], p->a.runner, p->b.runner, p->diags);
    return !p->failed;
}

static bool open_samples(Side *s, const CompareData *data, Diags *d) {
    Module *m = s->program->module;
    s->samples = data->n ? samples_open(m->arena, m, data->paths, data->n, d)
                         : samples_random(m->arena, m, data->random);
    return s->samples && samples_ok(s->samples) &&
           (!data->n || samples_take(s->samples, data->part));
}

static bool open_side(Side *s, Module *m, const ProgramOptions *o, Diags *d) {
    ProgramOptions all = o ? *o : (ProgramOptions){0};
    all.keep_all = true;
    s->program = program_build(m, &all, d);
    if (!s->program)
        return false;
    s->runner = runner_new(m->arena, s->program);
    return true;
}

static void compare_sample(const Side *a, const Side *b, const Comparison *c, ErrorSums *sums,
                           double *x, double *y) {
    for (size_t i = 0; i < c->n; i++) {
        const CompareRow *row = &c->rows[i];
        size_t n;
        if (!runner_computed(a->runner, row->a) || !runner_computed(b->runner, row->b) ||
            !type_count(row->a->type, &n))
            continue;
        value_reals(row->a, runner_value(a->runner, row->a), n, x);
        value_reals(row->b, runner_value(b->runner, row->b), n, y);
        error_add(&sums[i], x, y, n);
    }
}

static size_t largest(const Comparison *c) {
    size_t most = 0, n;
    for (size_t i = 0; i < c->n; i++)
        if (type_count(c->rows[i].a->type, &n) && n > most)
            most = n;
    return most;
}

static bool run_both(Pair *p, Comparison *c, Arena *arena) {
    ErrorSums *sums = NEW_ARRAY(arena, ErrorSums, c->n);
    size_t most = largest(c);
    double *x = NEW_ARRAY(arena, double, most), *y = NEW_ARRAY(arena, double, most);
    while (load_both(p)) {
        if (!runner_run(p->a.runner, p->diags) || !runner_run(p->b.runner, p->diags))
            return false;
        compare_sample(&p->a, &p->b, c, sums, x, y);
        c->samples++;
    }
    size_t kept = 0; /* a value that never came up in both is not compared */
    for (size_t i = 0; i < c->n; i++)
        if (sums[i].count || c->rows[i].is_output) {
            compare_finish(&c->rows[i], &sums[i]);
            c->rows[kept++] = c->rows[i];
        }
    c->n = kept;
    return !p->failed && samples_ok(p->a.samples) && (p->shared || samples_ok(p->b.samples));
}

bool compare_modules(Module *a, Module *b, const CompareData *data, const ProgramOptions *options_a,
                     const ProgramOptions *options_b, Comparison *out, Diags *d) {
    Pair p = {.shared = data->n == 0, .diags = d};
    size_t level = progress_begin(diags_progress(d), "comparison", 0);
    *out = (Comparison){0};
    bool ok =
        open_side(&p.a, a, options_a, d) && open_side(&p.b, b, options_b, d) &&
        open_samples(&p.a, data, d) &&
        (p.shared ? match_inputs(a, b, &p.twins, &p.n_twins, d) : open_samples(&p.b, data, d)) &&
        pair_values(p.a.program, p.b.program, out, d) && run_both(&p, out, a->arena);
    if (ok)
        out->unmeasured = find_unmeasured(p.b.program);
    if (p.a.samples)
        samples_close(p.a.samples);
    if (p.b.samples)
        samples_close(p.b.samples);
    progress_end(diags_progress(d), level);
    return ok;
}
