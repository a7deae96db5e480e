/* Keeps onnxruntime from fusing where its own fusion is wrong or has no kernel. It looks for
 * DequantizeLinear, operator, QuantizeLinear; a Sum of one operand behind the DequantizeLinear
 * changes no number, is not optimised away, and is no part of any pattern. */
#include <math.h>

#include "ir/minifloat.h"
#include "passes/target/legal.h"
#include "passes/target/ort_kernels.h"

static int stored_bits(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && elem_is_int(v->type.elem) ? elem_bits(v->type.elem)
                                                                         : 32;
}

/* Constant integers, be it once a QuantizeLinear on them has been folded. */
static bool is_weight(const Value *v) {
    return value_data(v) || (v->def && is_onnx_quantize(v->def) && value_data(v->def->in[0]));
}

/* Activations below 8 bits have no kernels, weights below 4 bits neither. */
static bool is_too_small(const Value *v, bool weight) {
    const Node *dq = onnx_dequantize_of(v);
    return dq && is_weight(dq->in[0]) == weight && stored_bits(dq->in[0]) < (weight ? 4 : 8);
}

static bool has_small_activation(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (is_too_small(n->in[i], false))
            return true;
    return false;
}

static bool is_single(const Value *v) {
    size_t count;
    return type_count(v->type, &count) && count == 1;
}

/* What a conversion states is not one scale: no kernel takes that, and the fusion does not ask, but
 * for one scale a channel of constant weights, and 4-bit weights in blocks. */
static bool has_many_scales(const Node *conversion, bool weight) {
    if (!weight)
        return conversion->in[1]->type.rank > 0 && !is_single(conversion->in[1]);
    return node_int(conversion, "block_size", 0) && stored_bits(conversion->in[0]) >= 8;
}

/* Weights of 32 bits fuse as those of 8 do, to a product that does not take them. */
static bool has_wide_weights(const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    size_t at = r && r->kind == QUANT_MAC ? (size_t)r->weight : 0;
    const Node *w = at && n->n_in > at ? onnx_dequantize_of(n->in[at]) : NULL;
    return w && stored_bits(w->in[0]) >= 32;
}

static bool has_no_kernel(const Uses *u, const Node *n) {
    if (has_small_activation(n) || has_wide_weights(n))
        return true;
    for (size_t i = 0; i < n->n_in; i++) {
        const Node *dq = onnx_dequantize_of(n->in[i]);
        if (dq && has_many_scales(dq, is_weight(dq->in[0])))
            return true;
    }
    const Use *use;
    size_t uses = n->n_out && n->out[0] ? uses_of(u, n->out[0], &use) : 0;
    for (size_t i = 0; i < uses; i++)
        if (use[i].node && is_onnx_quantize(use[i].node) && has_many_scales(use[i].node, false))
            return true;
    return false;
}

/* Whether v is made of 32-bit integers, as passes/emulate.c writes their DequantizeLinear. */
static bool is_of_int32(const Value *v) {
    while (v && v->def && v->type.kind == TYPE_TENSOR && elem_is_float(v->type.elem) &&
           (node_is(v->def, "Cast") || node_is(v->def, "Mul") || is_onnx_dequantize(v->def)))
        v = v->def->in[0];
    return v && v->type.kind == TYPE_TENSOR && elem_is_int(v->type.elem) && stored_bits(v) >= 32;
}

/* Whether numbers of v are taken the logarithm of or divided by, moved or added to on the way. */
static bool is_singular(const Uses *u, const Value *v, int *left) {
    const Use *use;
    size_t n = uses_of(u, v, &use);
    for (size_t i = 0; i < n && (*left)-- > 0; i++) {
        const Node *to = use[i].node;
        if (!to || !to->def || use[i].index >= 32)
            continue;
        if (to->def->quant.singular >> use[i].index & 1)
            return true;
        bool goes_on = to->def->quant.adds || to->def->quant.keeps_zero ||
                       (to->def->quant.kind == QUANT_MOVE && use[i].index == 0);
        if (goes_on && to->n_out && to->out[0] && is_singular(u, to->out[0], left))
            return true;
    }
    return false;
}

/* MatMulNBits, which takes weights of up to 8 bits, rounds its float operand to 8 bits. Integers of
 * 32 bits are not written for that, and sums of positive numbers come out below 0, of which there
 * is no logarithm. */
static bool is_rounded(const Uses *u, const Node *n) {
    enum { BUDGET = 16 }; /* readers to look at */
    int left = BUDGET;
    bool product = node_is(n, "MatMul") || node_is(n, "Gemm");
    const Node *w = product && n->n_in > 1 ? onnx_dequantize_of(n->in[1]) : NULL;
    return w && stored_bits(w->in[0]) <= 8 &&
           (is_of_int32(n->in[0]) ||
            (!onnx_dequantize_of(n->in[0]) && is_singular(u, n->out[0], &left)));
}

static double const_scale(const Node *dq, size_t i) {
    const Tensor *t = value_data(dq->in[1]);
    return t && t->data && t->count ? tensor_float(t, i < t->count ? i : 0) : 0;
}

/* The product of two scales as a scale of that type; 0 where it is too coarse for that. */
static double step_of(double x, double w, ElemType e) {
    uint64_t bits;
    double exact = x * w, step = exact;
    if (elem_bits(e) < 32)
        step = float_encode(e, exact, &bits) ? float_decode(e, bits) : 0;
    return fabs(step - exact) <= exact / 256 ? step : 0;
}

/* onnxruntime rounds a float bias between such operands to int32 at the product of their scales,
 * stated in their type, and does not ask whether either fits. */
static bool bias_overflows(const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    size_t at = r && r->kind == QUANT_MAC ? (size_t)r->bias : 0;
    const Tensor *b = at && n->n_in > at ? value_data(n->in[at]) : NULL;
    const Node *x = onnx_dequantize_of(n->in[0]),
               *w = b ? onnx_dequantize_of(n->in[r->weight]) : NULL;
    for (size_t i = 0; x && w && b->data && i < b->count; i++) {
        double sx = const_scale(x, 0), sw = const_scale(w, i);
        double step = step_of(sx, sw, x->in[1]->type.elem);
        if (sx > 0 && sw > 0 && fabs(tensor_float(b, i)) >= (double)INT32_MAX * step)
            return true;
    }
    return false;
}

/* onnxruntime takes whatever scales weights have, along any axis, for such of the output channels:
 * it computes something else, or stops while it runs. */
static bool has_scales_of_other_axis(const Node *n, const OpCtx *c) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    size_t at = r && r->kind == QUANT_MAC && r->weight_axis ? (size_t)r->weight : 0;
    const Node *w = at && n->n_in > at ? onnx_dequantize_of(n->in[at]) : NULL;
    int channel = w ? r->weight_axis(c) : -1, rank = w ? w->in[0]->type.rank : -1;
    if (channel < 0 || rank < 0 || node_int(w, "block_size", 0) || w->in[1]->type.rank != 1 ||
        is_single(w->in[1]))
        return false;
    int64_t axis = node_int(w, "axis", 1);
    return (axis < 0 ? axis + rank : axis) != channel;
}

/* The scale of the QuantizeLinear that alone reads the result; 0 where there is none. */
static float scale_behind(const Uses *u, const Node *n) {
    const Node *q = n->n_out && n->out[0] ? uses_only_node(u, n->out[0]) : NULL;
    return q && is_onnx_quantize(q) ? (float)const_scale(q, 0) : 0;
}

/* What the fusion makes of it loads, and computes something else. */
static bool is_fused_wrongly(const Uses *u, const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    return (n->def && n->def->quant.ort_misfuses &&
            n->def->quant.ort_misfuses(&c, scale_behind(u, n))) ||
           has_scales_of_other_axis(n, &c) || bias_overflows(n);
}

/* A QuantizeLinear to few bits is moved up through data movers and must not meet a Clip there. */
static bool is_moved_wrongly(const Node *n) {
    const Node *from = is_onnx_quantize(n) ? n->in[0]->def : NULL;
    QuantClass k = from && from->def ? from->def->quant.kind : QUANT_NEVER;
    return stored_bits(n->out[0]) < 8 && (k == QUANT_MOVE || k == QUANT_ORDER || k == QUANT_CLAMP);
}

/* A DequantizeLinear of int8 is moved down through data movers, and the QuantizeLinear put there
 * has, since opset 21, no zero point of that type: the model does not load. */
static bool is_moved_past(const Uses *u, const Node *n, int64_t opset) {
    const Node *dq = n->n_in && n->n_out && n->out[0] ? onnx_dequantize_of(n->in[0]) : NULL;
    QuantClass k = n->def ? n->def->quant.kind : QUANT_NEVER;
    if (!dq || (k != QUANT_MOVE && k != QUANT_ORDER) || opset < 21 || dq->n_in < 3 ||
        is_weight(dq->in[0]) || dq->in[0]->type.elem != ELEM_INT8)
        return false;
    const Use *use;
    size_t uses = uses_of(u, n->out[0], &use), quantized = 0;
    for (size_t i = 0; i < uses; i++)
        quantized += use[i].node && is_onnx_quantize(use[i].node);
    return quantized < uses || !uses;
}

/* ReduceMax, DepthToSpace and others are put on bytes at opsets that have no kernel for them, only
 * later ones: the model does not load. */
static bool is_too_old(const Node *n, int64_t opset) {
    const Node *dq = n->n_in && n->def ? onnx_dequantize_of(n->in[0]) : NULL;
    ElemType e = dq ? dq->in[0]->type.elem : ELEM_UNDEFINED;
    QuantClass k = n->def ? n->def->quant.kind : QUANT_NEVER;
    return (k == QUANT_MOVE || k == QUANT_ORDER) && (e == ELEM_INT8 || e == ELEM_UINT8) &&
           !ort_has_kernel("", n->def->name, opset, &e, 1) &&
           ort_has_kernel("", n->def->name, INT64_MAX, &e, 1);
}

typedef struct Guard {
    QuantBuild *b;
    Uses *uses;
    int64_t opset;
} Guard;

bool is_guard(const Node *n) {
    return node_is(n, "Sum") && n->n_in == 1 && n->n_out == 1 && n->in[0] && n->out[0];
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

/* Where a weight and its product fuse (MatMulNBits), whatever becomes of the activations. */
static void guard_weights(QuantBuild *b, const Uses *u, Node *n) {
    if (is_rounded(u, n))
        guard(b, n, 1);
    for (size_t i = 0; i < n->n_in; i++)
        if (is_too_small(n->in[i], true))
            guard(b, n, i);
}

/* The first operand that a fusion needs. */
static size_t first_dequantized(const Node *n) {
    size_t i = 0;
    while (i < n->n_in && !onnx_dequantize_of(n->in[i]))
        i++;
    return i;
}

/* What onnxruntime would refuse to load, or round harder, is its own; wrong numbers are not for any
 * target, as it is what most run files of ONNX alone with. */
static void guard_numbers(Graph *g, void *ctx) {
    Guard *with = ctx;
    FOR_NODES(n, g) {
        size_t i = first_dequantized(n);
        if (i < n->n_in && !is_onnx_quantize(n) && !has_bodies(n) &&
            is_fused_wrongly(with->uses, n))
            guard(with->b, n, i);
    }
}

static void guard_graph(Graph *g, void *ctx) {
    Guard *with = ctx;
    FOR_NODES(n, g) {
        bool computes = !is_onnx_quantize(n) && !has_bodies(n);
        if (computes)
            guard_weights(with->b, with->uses, n);
        size_t i = first_dequantized(n);
        bool fused = i < n->n_in && computes &&
                     (is_fused_wrongly(with->uses, n) || has_no_kernel(with->uses, n));
        if (fused)
            guard(with->b, n, i);
        else if (n->n_out && n->out[0] &&
                 (is_moved_wrongly(n) || is_too_old(n, with->opset) ||
                  is_moved_past(with->uses, n, with->opset)))
            guard(with->b, n, 0);
    }
}

void guard_fusions(QuantBuild *b, Module *m, Target target) {
    Guard with = {b, uses_new(m), module_opset(m, STR(""))};
    if (target == TARGET_ORT_CPU || target == TARGET_ONNX)
        module_each_graph(m, target == TARGET_ONNX ? guard_numbers : guard_graph, &with);
}
