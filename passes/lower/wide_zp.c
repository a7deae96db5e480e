/* Integer arithmetic takes zero points that the storage type holds: padding stores them, QOperators
 * and kernels take them in that type. Where -wide-zp lets one lie outside, operators compute in
 * float between conversions; only movers, which compute nothing, stay on the integers. */
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct Wide {
    QuantBuild b;
    PassContext *c;
    size_t n;       /* size of the table: values that existed at the start */
    Value **floats; /* by value id: its float companion */
} Wide;

static bool is_wide(const Value *v) {
    const Quant *q = op_quant(v);
    return q && q->kind == QUANT_PARAMS && quant_is_wide(q);
}

static bool concerned(const Node *n) {
    if (is_own_quantize(n) || is_own_dequantize(n) || is_requantize(n) || is_reinterpret(n) ||
        has_bodies(n) ||
        (n->def && (n->def->quant.kind == QUANT_MOVE || n->def->quant.kind == QUANT_ORDER)))
        return false;
    for (size_t i = 0; i < n->n_in; i++)
        if (is_wide(n->in[i]))
            return true;
    for (size_t i = 0; i < n->n_out; i++)
        if (is_wide(n->out[i]))
            return true;
    return false;
}

static Value *float_of(Wide *w, Value *v, Node *user) {
    if (!op_quant(v) || v->id >= w->n)
        return v;
    if (w->floats[v->id])
        return w->floats[v->id];
    Str base = base_name(v->name);
    Node *n =
        build_node_for(&w->b, v, "DequantizeLinear",
                       arena_strf(w->b.a, STR_FMT "_DequantizeLinear", STR_ARG(base)), OPERANDS(v));
    node_add_output(n, 0, derived_name(&w->b, base, "_dequantized"), real_type(v->type));
    place_behind(v, n, user);
    op_resolve(n, w->b.d);
    return w->floats[v->id] = n->out[0];
}

/* The node yields a float, quantized behind it into the value that everybody reads. */
static void float_result(Wide *w, Node *n, size_t i) {
    Value *y = n->out[i];
    if (!op_quant(y))
        return;
    Str base = base_name(y->name);
    Node *to =
        build_node(&w->b, n, "QuantizeLinear",
                   arena_strf(w->b.a, STR_FMT "_QuantizeLinear", STR_ARG(base)), OPERANDS(y));
    node_follow(n, i, to, derived_name(&w->b, base, "_float"), real_type(y->type));
    op_resolve(to, w->b.d);
}

static void run_graph(Graph *g, void *ctx) {
    Wide *w = ctx;
    FOR_NODES(n, g) {
        if (!concerned(n))
            continue;
        for (size_t i = 0; i < n->n_in; i++)
            n->in[i] = n->in[i] ? float_of(w, n->in[i], n) : NULL;
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                float_result(w, n, i);
        pass_remark(w->c, n, "a zero point lies outside its storage type");
    }
}

bool pass_wide_zp(Module *m, PassContext *c) {
    Wide w = {.b = quant_build_new(m, c, "wide-zp"),
              .c = c,
              .n = m->n_values,
              .floats = NEW_ARRAY(m->arena, Value *, m->n_values)};
    module_each_graph(m, run_graph, &w);
    edit_order(m);
    return true;
}
