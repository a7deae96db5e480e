/* Keeps onnxruntime from fusing where its own fusion is wrong or has no kernel. It looks for
 * DequantizeLinear, operator, QuantizeLinear; a Sum of one operand behind the DequantizeLinear
 * changes no number, is not optimised away, and is no part of any pattern. */
#include "passes/legal.h"

static const Node *dequantize_of(const Value *v) {
    return v && v->def && is_onnx_dequantize(v->def) ? v->def : NULL;
}

static int stored_bits(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && elem_is_int(v->type.elem) ? elem_bits(v->type.elem)
                                                                         : 32;
}

static int64_t int_attr(const Node *n, const char *name) {
    const Attr *a = node_attr(n, name);
    return a && a->kind == ATTR_INT ? a->v.i[0] : 0;
}

static bool has_dilations(const Node *n) {
    const Attr *a = node_attr(n, "dilations");
    for (size_t i = 0; a && a->kind == ATTR_INTS && i < a->n; i++)
        if (a->v.i[i] != 1)
            return true;
    return false;
}

/* Parameters per column of a stack of matrices. */
static bool has_stacked_columns(const Node *n) {
    const Node *w = n->n_in == 2 ? dequantize_of(n->in[1]) : NULL;
    return w && n->in[1]->type.rank > 2 && w->in[1]->type.rank > 0;
}

/* Activations below 8 bits have no kernels, weights below 4 bits neither. */
static bool is_too_small(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Node *dq = dequantize_of(n->in[i]);
        if (dq && stored_bits(dq->in[0]) < (value_data(dq->in[0]) ? 4 : 8))
            return true;
    }
    return false;
}

static bool is_fused_wrongly(const Node *n) {
    if (node_is(n, "AveragePool")) /* QLinearAveragePool has no dilations and counts wrongly */
        return has_dilations(n) || (int_attr(n, "ceil_mode") && int_attr(n, "count_include_pad"));
    return (node_is(n, "MatMul") && has_stacked_columns(n)) || is_too_small(n);
}

/* A QuantizeLinear to few bits is moved up through data movers and must not meet a Clip there. */
static bool is_moved_wrongly(const Node *n) {
    const Node *from = is_onnx_quantize(n) ? n->in[0]->def : NULL;
    QuantClass k = from && from->def ? from->def->quant.kind : QUANT_NEVER;
    return stored_bits(n->out[0]) < 8 && (k == QUANT_MOVE || k == QUANT_ORDER || k == QUANT_CLAMP);
}

static void guard(QuantBuild *b, Node *n, size_t i) {
    Value *x = n->in[i];
    Node *sum = build_node(b, n->graph, "", "Sum", 1, STR_NONE);
    sum->loc = n->loc;
    node_from(sum, n, "guard");
    sum->in[0] = x;
    n->in[i] = node_add_output(sum, 0, derived_name(b, base_name(x->name), "_guard"), x->type);
    op_resolve(sum, b->d);
    node_insert_before(n, sum);
}

static void guard_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) {
        size_t i = 0;
        while (i < n->n_in && !dequantize_of(n->in[i]))
            i++;
        bool fused = i < n->n_in && !is_onnx_quantize(n) && !has_bodies(n) && is_fused_wrongly(n);
        if (fused)
            guard(ctx, n, i);
        else if (n->n_out && n->out[0] && is_moved_wrongly(n))
            guard(ctx, n, 0);
    }
}

void guard_fusions(QuantBuild *b, Module *m, Target target) {
    if (target == TARGET_ORT_CPU)
        module_each_graph(m, guard_graph, b);
}
