/* Predicates about the size of scales and numbers. */
#include <math.h>

#include "ir/minifloat.h"
#include "target/fault.h"

static double const_scale(const Node *conversion, size_t i) {
    const Tensor *t = value_data(conversion->in[1]);
    return t && t->data && t->count ? tensor_float(t, i < t->count ? i : 0) : 0;
}

/* The one scale of the operand; 0 where there is none, or none is known. */
static double scale_before(const FaultSite *s) {
    const Value *x = node_input(s->n, 0);
    const Quant *q = x ? op_quant(x) : NULL;
    const Node *dq = x && !q ? onnx_dequantize_of(x) : NULL;
    const Tensor *t = dq ? value_data(dq->in[1]) : NULL;
    return q ? (double)quant_scale(q, 0) : t && t->count == 1 ? const_scale(dq, 0) : 0;
}

/* The same of the result, or of the QuantizeLinear that alone reads it. */
static double scale_behind(const FaultSite *s) {
    const Value *y = s->n->n_out ? s->n->out[0] : NULL;
    const Quant *q = y ? op_quant(y) : NULL;
    if (q)
        return quant_is_per_tensor(q) ? (double)quant_scale(q, 0) : 0;
    const Node *to = y && s->uses ? uses_only_node(s->uses, y) : NULL;
    return to && is_onnx_quantize(to) ? const_scale(to, 0) : 0;
}

/* The mean of whole planes, for which onnxruntime's kernel stops while it runs. */
bool predicate_scales_far_apart(const FaultSite *s) {
    const Attr *window = node_attr(s->n, "kernel_shape");
    bool windowed = !node_is(s->n, "GlobalAveragePool");
    Type x = op_type(&s->c, 0);
    double plane = 1;
    for (int i = 2; i < x.rank; i++) {
        if (x.dims[i].value < 1)
            return false;
        plane *= (double)x.dims[i].value;
        if (windowed && !(attr_holds(window, ATTR_INTS) && window->n == (size_t)x.rank - 2 &&
                          window->v.i[i - 2] == x.dims[i].value))
            return false;
    }
    double from = scale_before(s), to = scale_behind(s), ratio = from / (to * plane);
    return from > 0 && to > 0 && !(ratio >= 0x1p-32 && ratio < 256);
}

/* onnxruntime divides by the scale as a whole number of steps to 1: 14 for the float next to
 * 1 / 15, 254 for that next to 1 / 255, which the range from 0 to 1 has of most tools. More than
 * half a step lost at the largest is more than rounding loses, and always in one direction. */
bool predicate_scale_cut_off(const FaultSite *s) {
    float scale = (float)scale_behind(s), steps = 1 / scale;
    float lost = steps - floorf(steps);
    return scale > 0 && (lost > 0.5F || lost > steps * 0x1p-7f);
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
bool predicate_bias_overflows(const FaultSite *s) {
    const Node *n = s->n;
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    size_t at = r && r->kind == QUANT_MAC ? (size_t)r->mac.bias : 0;
    const Tensor *b = at && n->n_in > at ? value_data(n->in[at]) : NULL;
    const Node *x = b ? onnx_dequantize_of(n->in[0]) : NULL,
               *w = b ? onnx_dequantize_of(n->in[r->mac.weight]) : NULL;
    for (size_t i = 0; x && w && b->data && i < b->count; i++) {
        double sx = const_scale(x, 0), sw = const_scale(w, i);
        double step = step_of(sx, sw, x->in[1]->type.elem);
        if (sx > 0 && sw > 0 && fabs(tensor_float(b, i)) >= (double)INT32_MAX * step)
            return true;
    }
    return false;
}

/* ---- an int32 bias, which fused kernels read at the product of their operands' scales ---- */

static size_t scale_count(const Node *conversion) {
    const Tensor *t = value_data(conversion->in[1]);
    return t && t->data ? t->count : 0;
}

/* Scales are per tensor, or along the last axis; ones that are not known are not judged. */
static bool is_at_product(const Node *b, const Node *x, const Node *w) {
    size_t n_b = scale_count(b), n_w = scale_count(w), n = n_b > n_w ? n_b : n_w;
    int rank = b->in[0]->type.rank;
    int64_t axis = node_int(b, "axis", 1);
    if (n_b > 1 && (axis < 0 ? axis + rank : axis) != rank - 1 && rank > 1)
        return false;
    if (n_b > 1 && n_w > 1 && n_b != n_w)
        return false;
    for (size_t i = 0; i < n; i++) {
        double have = const_scale(b, i), want = const_scale(x, 0) * const_scale(w, i);
        if (have > 0 && want > 0 && fabs(have - want) > want * 0x1p-20)
            return false;
    }
    return true;
}

/* Whether v is int32 that product n would take for its bias, at a scale of its own. */
static bool is_bias_elsewhere(const Node *n, const Value *v) {
    const QuantRule *r = n && n->def ? &n->def->quant : NULL;
    if (!r || r->kind != QUANT_MAC || n->n_in <= (size_t)r->mac.weight)
        return false;
    const Node *b = onnx_dequantize_of(v), *x = onnx_dequantize_of(n->in[0]),
               *w = onnx_dequantize_of(n->in[r->mac.weight]);
    return b && x && w && b->in[0]->type.elem == ELEM_INT32 && stored_bits(x->in[0]) == 8 &&
           stored_bits(w->in[0]) == 8 && !is_at_product(b, x, w);
}

/* What the product is, once with its bias as an operand, once with it added behind: onnxruntime
 * makes Gemm of MatMul and Add, and of Gemm and Sum. */
bool predicate_bias_elsewhere(const FaultSite *s) {
    const Node *n = s->n;
    const Value *v = n->in[s->operand];
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    if (r && r->kind == QUANT_MAC)
        return r->mac.bias && s->operand == (size_t)r->mac.bias && is_bias_elsewhere(n, v);
    const char *of = node_is(n, "Add") ? "MatMul" : "Gemm";
    return n->n_in == 2 && v && v->def && node_is(v->def, of) &&
           is_bias_elsewhere(v->def, n->in[1 - s->operand]);
}

/* ---- MatMulNBits, which rounds its float operand to 8 bits ---- */

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

/* Integers of 32 bits are not written for that, and sums of positive numbers come out below 0, of
 * which there is no logarithm. */
bool predicate_rounds_integers(const FaultSite *s) {
    enum { BUDGET = 16 }; /* readers to look at */
    const Node *n = s->n, *w = s->operand == 1 ? onnx_dequantize_of(n->in[1]) : NULL;
    int left = BUDGET;
    return w && s->uses && stored_bits(w->in[0]) <= 8 &&
           (is_of_int32(n->in[0]) ||
            (!onnx_dequantize_of(n->in[0]) && is_singular(s->uses, n->out[0], &left)));
}
