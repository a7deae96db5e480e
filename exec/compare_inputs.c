#include "exec/compare_inputs.h"
#include "exec/sample_files.h"

bool compare_same_count(const Value *x, const Value *y) {
    size_t n, k;
    return type_count(x->type, &n) && type_count(y->type, &k) && n == k;
}

/* The graph inputs that need data, in order of port. */
static size_t open_inputs(const Graph *g, const Value **out) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data)
            out[n++] = g->in[i];
    return n;
}

static bool match_twin(Arena *arena, const Value *x, const Value *y, CompareTwin *t, Diags *d) {
    t->from = x;
    t->to = y;
    type_count(x->type, &t->count);
    if (!compare_same_count(x, y))
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

bool compare_match_inputs(const Module *a, const Module *b, CompareTwin **twins, size_t *n,
                          Diags *d) {
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
    *twins = NEW_ARRAY(arena, CompareTwin, *n);
    for (size_t i = 0; i < *n; i++) {
        size_t port = (size_t)(uintptr_t)map_get(ports, y[i]->name);
        CompareTwin t = {.from_port = port ? port - 1 : i, .to_port = i};
        if (!match_twin(arena, x[t.from_port], y[i], &t, d))
            return false;
        (*twins)[i] = t;
    }
    return true;
}

bool compare_pass_on(const CompareTwin *t, const ModelRun *from, const ModelRun *to, Diags *d) {
    const uint8_t *src = model_run_input(from, t->from_port);
    uint8_t *dst = model_run_input(to, t->to_port);
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
