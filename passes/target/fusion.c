#include "passes/target/fusion.h"
#include "ir/ops/qop.h"

#include "passes/target/legal.h"

/* What a conversion states, when constant and one for all. */
static const Quant *params(const Node *conversion, ElemType e) {
    const Value *zp = node_input(conversion, 2);
    const Quant *q = qop_quant(conversion->graph->module->arena, e, conversion->in[1], zp, 0);
    return q && quant_is_per_tensor(q) ? q : NULL;
}

static const Node *only_quantize(const Uses *u, const Value *v) {
    const Node *q = uses_only_node(u, v);
    return q && is_onnx_quantize(q) && q->in[0] == v ? q : NULL;
}

/* A Relu or Clip that the QuantizeLinear behind it makes superfluous. */
static const Node *quantize_behind_clamp(const Uses *u, const Node *n) {
    const Node *q = n->n_out && n->out[0] && n->def && n->def->quant.kind == QUANT_CLAMP
                        ? only_quantize(u, n->out[0])
                        : NULL;
    const Quant *to = q ? params(q, q->out[0]->type.elem) : NULL;
    return to && elem_bits(to->storage) <= 16 && clamp_is_noop(n, to) ? q : NULL;
}

/* The QuantizeLinear that alone reads result `i`, a superfluous clamp between taken out. */
static const Node *quantize_of(const Uses *u, const Node *n, size_t i) {
    const Value *y = n->out[i];
    const Node *user = uses_only_node(u, y), *q = only_quantize(u, y);
    return q || !user ? q : quantize_behind_clamp(u, user);
}

/* ---- conditions ---- */

static const char *operands_refuse(const Node *n, bool product) {
    for (size_t i = 0; i < n->n_in; i++) {
        bool weight = product && i == 1;
        if (!n->in[i] || !(weight || quant_rule_is_data(&n->def->quant, i)))
            continue;
        const Node *dq = onnx_dequantize_of(n->in[i]);
        if (!dq)
            return is_guard(n->in[i]->def ? n->in[i]->def : n)
                       ? "kept apart: the runtime has no right kernel for what it would fuse"
                       : node_strf(n, "operand %zu is float", i);
        int bits = elem_bits(dq->in[0]->type.elem);
        if (product && bits != 8)
            return node_strf(n, "operand %zu has %d bits, its kernels take 8", i, bits);
    }
    return NULL;
}

static const char *product_refuses(const Node *n, const Node *q) {
    ElemType x = onnx_dequantize_of(n->in[0])->in[0]->type.elem;
    ElemType w = onnx_dequantize_of(n->in[1])->in[0]->type.elem;
    const char *why = operands_refuse(n, true);
    if (why)
        return why;
    if (x == ELEM_INT8 && w != ELEM_INT8)
        return node_strf(n, "there is no kernel for int8 by %s", elem_name(w));
    if (q && q->out[0]->type.elem != x)
        return node_strf(n, "there is no kernel from %s to %s", elem_name(x),
                         elem_name(q->out[0]->type.elem));
    const Value *bias = node_input(n, 2);
    const Tensor *numbers = bias ? value_data(bias) : NULL;
    if (bias && !onnx_dequantize_of(bias) && !(numbers && numbers->rank == 1))
        return "its bias is float and no constant list, which it would make int32";
    if (node_float(n, "beta", 1.0F) != 1.0F)
        return "QGemm has no beta";
    return node_float(n, "alpha", 1.0F) != 1.0F && bias ? "alpha would multiply the bias, too"
                                                        : NULL;
}

static const char *all_refuse(const Node *n, const Node *q) {
    const char *why = operands_refuse(n, false);
    ElemType y = q->out[0]->type.elem;
    for (size_t i = 0; !why && i < n->n_in; i++) {
        const Node *dq =
            quant_rule_is_data(&n->def->quant, i) ? onnx_dequantize_of(n->in[i]) : NULL;
        if (dq && dq->in[0]->type.elem != y)
            why = node_strf(n, "operand %zu is %s, the result %s", i,
                            elem_name(dq->in[0]->type.elem), elem_name(y));
    }
    return why || elem_bits(y) == 8 ? why
                                    : node_strf(n, "its kernel takes 8 bits, not %d", elem_bits(y));
}

static const char *move_refuses(const Node *n, const Uses *u, TargetRule rule) {
    const Node *dq = onnx_dequantize_of(n->in[0]);
    const Quant *x = params(dq, dq->in[0]->type.elem);
    if (!x || dq->n_in < 3)
        return "the parameters of its operand are not one constant scale and zero point";
    for (size_t i = 0; i < n->n_out; i++) {
        const Node *q = n->out[i] ? quantize_of(u, n, i) : NULL;
        const Quant *y = q ? params(q, q->out[0]->type.elem) : NULL;
        if (!y || !quant_equal(x, y))
            return q ? "operand and result have other parameters" : "its result is not quantized";
    }
    const Attr *mode = node_attr(n, "mode");
    if (rule == TARGET_RULE_NEAREST && attr_holds(mode, ATTR_STRING) &&
        !str_is(mode->v.s[0], "nearest"))
        return "interpolating integers would round twice";
    return rule == TARGET_RULE_ORDER && elem_bits(x->storage) != 8 ? "its kernel takes 8 bits"
                                                                   : NULL;
}

/* ---- products with quantized weights alone ---- */

/* MatMulNBits takes constant matrices of 4 and 8 bits with one scale, one a column, or 4 bits in
 * blocks along the rows. At its accuracy_level of 4, which the fusion states where no session
 * option says otherwise, it rounds blocks of its float operand to 8 bits. */
static bool is_rounded(const Node *n, const Uses *u) {
    const Value *w = node_input(n, 1), *bias = node_input(n, 2);
    const Node *dq = w ? onnx_dequantize_of(w) : NULL;
    bool plain = (node_is(n, "MatMul") || node_is(n, "Gemm")) && !node_int(n, "transA", 0) &&
                 !node_int(n, "transB", 0) && node_float(n, "alpha", 1) == 1 &&
                 node_float(n, "beta", 1) == 1 && (!bias || value_rank(bias) == 1);
    if (!plain || !dq || uses_only_here(u, w) != n || w->type.elem != ELEM_FLOAT)
        return false;
    const Tensor *ints = value_data(dq->in[0]), *scale = value_data(dq->in[1]);
    if (!ints || !scale || ints->rank != 2)
        return false;
    int bits = elem_bits(ints->elem);
    int64_t block = node_int(dq, "block_size", 0), axis = node_int(dq, "axis", 1);
    axis += axis < 0 ? 2 : 0;
    if (block)
        return bits == 4 && axis == 0 && is_nbits_block(block);
    return (bits == 4 || bits == 8) && (scale->count == 1 || axis == 1);
}

/* ---- one node ---- */

static bool meets_integers(const Node *n, const Uses *u) {
    for (size_t i = 0; i < n->n_in; i++)
        if (onnx_dequantize_of(n->in[i]) ||
            (n->in[i] && n->in[i]->def && is_guard(n->in[i]->def) && !is_guard(n)))
            return true;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && only_quantize(u, n->out[i]))
            return true;
    return false;
}

static bool takes_integers(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->type.kind == TYPE_TENSOR && n->in[i]->type.quant)
            return true;
    return qop_of(n) || is_integer_product(n);
}

Fusion fusion_of(const TargetPage *t, const Node *n, const Uses *u) {
    const char *name = node_strf(n, STR_FMT, STR_ARG(n->op));
    if (node_conversion(n) != CONVERT_NONE)
        return (Fusion){FUSION_CONVERSION, name, NULL};
    if (takes_integers(n))
        return (Fusion){FUSION_ALREADY, name, NULL};
    if (quantize_behind_clamp(u, n))
        return (Fusion){FUSION_REMOVED, name, NULL};
    if (!meets_integers(n, u) || !n->def)
        return (Fusion){FUSION_NONE, name, NULL};
    const TargetFusion *k = target_fusion(t, n);
    if (!k)
        return (Fusion){FUSION_REFUSED, name,
                        node_strf(n, "%s has no rule for %s", t->runtime, name)};
    bool product = k->rule == TARGET_RULE_PRODUCT;
    if (product && !onnx_dequantize_of(n->in[0]) && !(n->in[0]->def && is_guard(n->in[0]->def)))
        return is_rounded(n, u) ? (Fusion){FUSION_ROUNDED, "MatMulNBits", NULL}
                                : (Fusion){FUSION_NONE, name, NULL}; /* weights alone */
    const char *why = operands_refuse(n, product);
    if (!why && !product && k->rule != TARGET_RULE_ALL)
        why = move_refuses(n, u, k->rule);
    const Node *q = quantize_of(u, n, 0);
    const char *op = k->as ? k->as : name;
    if (!why && k->as && !q && !k->real)
        why = "its result is not quantized, or read by others, too";
    if (!why && k->as && !q)
        op = k->real;
    if (!why && product)
        why = product_refuses(n, q);
    if (!why && k->rule == TARGET_RULE_ALL)
        why = all_refuse(n, q);
    if (why)
        return (Fusion){FUSION_REFUSED, name, why};
    return (Fusion){k->as ? FUSION_QOPERATOR : FUSION_INTEGERS, op, NULL};
}
