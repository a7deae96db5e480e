/* Predicates about shapes, types and attributes. */
#include <math.h>

#include "ir/minifloat.h"
#include "target/fault.h"
#include "target/ort_kernels.h"

int stored_bits(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && elem_is_int(v->type.elem) ? elem_bits(v->type.elem)
                                                                         : 32;
}

bool is_stored_weight(const Value *v) {
    return value_data(v) || (v->def && is_onnx_quantize(v->def) && value_data(v->def->in[0]));
}

/* The weight's DequantizeLinear of a product, or NULL. */
static const Node *weight_of(const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    size_t at = r && r->kind == QUANT_MAC ? (size_t)r->mac.weight : 0;
    return at && n->n_in > at ? onnx_dequantize_of(n->in[at]) : NULL;
}

static bool is_single(const Value *v) {
    size_t count;
    return type_count(v->type, &count) && count == 1;
}

/* ---- windows and axes ---- */

bool predicate_interpolates(const FaultSite *s) {
    const QuantRule *r = s->n->def ? &s->n->def->quant : NULL;
    return r && r->move.interpolates && r->move.interpolates(&s->c);
}

bool predicate_counts_overhang(const FaultSite *s) {
    return node_int(s->n, "ceil_mode", 0) && node_int(s->n, "count_include_pad", 0);
}

bool predicate_dilated(const FaultSite *s) {
    const Attr *a = node_attr(s->n, "dilations");
    for (size_t i = 0; attr_holds(a, ATTR_INTS) && i < a->n; i++)
        if (a->v.i[i] != 1)
            return true;
    return false;
}

bool predicate_grouped(const FaultSite *s) {
    return node_int(s->n, "group", 1) > 1;
}

/* Weights of Conv are [M, C / group, k...]. */
bool predicate_depthwise(const FaultSite *s) {
    Type w = op_type(&s->c, 1);
    return w.rank > 1 && w.dims[0].value == node_int(s->n, "group", 1) && w.dims[1].value == 1;
}

/* Before opset 13 all axes from the one that is stated on are one. */
bool predicate_along_one(const FaultSite *s) {
    Type x = op_type(&s->c, 0);
    bool flattens = node_opset(s->n) < 13;
    int64_t from = node_int(s->n, "axis", flattens ? 1 : -1), to;
    from += from < 0 ? x.rank : 0;
    if (x.rank < 0 || from < 0 || from > x.rank || (!flattens && from == x.rank))
        return true;
    to = flattens ? x.rank : from + 1;
    while (from < to && x.dims[from].value <= 1)
        from++;
    return from == to;
}

bool predicate_stacked_columns(const FaultSite *s) {
    const Value *b = op_in(&s->c, 1);
    const Node *dq = b && b->def && node_conversion(b->def) == CONVERT_DEQUANTIZE ? b->def : NULL;
    return dq && dq->n_in >= 2 && dq->in[1]->type.rank > 0 && b->type.rank > 2;
}

bool predicate_scales_of_other_axis(const FaultSite *s) {
    const QuantRule *r = s->n->def ? &s->n->def->quant : NULL;
    const Node *w = r && r->mac.weight_axis ? weight_of(s->n) : NULL;
    int channel = w ? r->mac.weight_axis(&s->c) : -1, rank = w ? w->in[0]->type.rank : -1;
    if (channel < 0 || rank < 0 || node_int(w, "block_size", 0) || w->in[1]->type.rank != 1 ||
        is_single(w->in[1]))
        return false;
    int64_t axis = node_int(w, "axis", 1);
    return (axis < 0 ? axis + rank : axis) != channel;
}

/* ---- widths and kernels ---- */

static bool is_too_small(const Value *v, bool weight) {
    const Quant *q = v ? op_quant(v) : NULL;
    if (q)
        return value_is_const(v) == weight && elem_bits(q->storage) < (weight ? 4 : 8);
    const Node *dq = onnx_dequantize_of(v);
    return dq && is_stored_weight(dq->in[0]) == weight && stored_bits(dq->in[0]) < (weight ? 4 : 8);
}

bool predicate_few_bits_weight(const FaultSite *s) {
    return is_too_small(s->n->in[s->operand], true);
}

bool predicate_few_bits_activations(const FaultSite *s) {
    for (size_t i = 0; i < s->n->n_in; i++)
        if (is_too_small(s->n->in[i], false))
            return true;
    return false;
}

bool predicate_wide_weights(const FaultSite *s) {
    const Node *w = weight_of(s->n);
    return w && stored_bits(w->in[0]) >= 32;
}

/* Of constant weights one scale a channel, and blocks of less than 8 bits, are nothing special. */
static bool has_many_scales(const Node *conversion, bool weight) {
    if (!weight)
        return conversion->in[1]->type.rank > 0 && !is_single(conversion->in[1]);
    return node_int(conversion, "block_size", 0) && stored_bits(conversion->in[0]) >= 8;
}

bool predicate_many_scales(const FaultSite *s) {
    const Node *n = s->n;
    for (size_t i = 0; i < n->n_in; i++) {
        const Node *dq = onnx_dequantize_of(n->in[i]);
        if (dq && has_many_scales(dq, is_stored_weight(dq->in[0])))
            return true;
    }
    const Use *use;
    size_t uses = s->uses && n->n_out && n->out[0] ? uses_of(s->uses, n->out[0], &use) : 0;
    for (size_t i = 0; i < uses; i++)
        if (use[i].node && is_onnx_quantize(use[i].node) && has_many_scales(use[i].node, false))
            return true;
    return false;
}

static QuantClass kind_of(const Node *n) {
    return n && n->def ? n->def->quant.kind : QUANT_NEVER;
}

static bool moves(const Node *n) {
    return kind_of(n) == QUANT_MOVE || kind_of(n) == QUANT_ORDER;
}

bool predicate_moved_to_few_bits(const FaultSite *s) {
    const Node *from = is_onnx_quantize(s->n) ? s->n->in[0]->def : NULL;
    return stored_bits(s->n->out[0]) < 8 && (moves(from) || kind_of(from) == QUANT_CLAMP);
}

bool predicate_made_of_none(const FaultSite *s) {
    size_t from, made;
    return s->n->n_in && s->n->in[0] && type_count(s->n->in[0]->type, &from) && from == 0 &&
           type_count(s->n->out[0]->type, &made) && made > 0;
}

/* onnxruntime moves a DequantizeLinear down through data movers; the QuantizeLinear put there has,
 * since opset 21, no zero point of type int8. */
bool predicate_moved_int8(const FaultSite *s) {
    const Node *n = s->n, *dq = n->n_in ? onnx_dequantize_of(n->in[0]) : NULL;
    if (!dq || !moves(n) || s->opset < 21 || dq->n_in < 3 || is_stored_weight(dq->in[0]) ||
        dq->in[0]->type.elem != ELEM_INT8)
        return false;
    const Use *use;
    size_t uses = s->uses ? uses_of(s->uses, n->out[0], &use) : 0, quantized = 0;
    for (size_t i = 0; i < uses; i++)
        quantized += use[i].node && is_onnx_quantize(use[i].node);
    return quantized < uses || !uses;
}

bool predicate_kernel_only_later(const FaultSite *s) {
    const Node *dq = s->n->n_in && s->n->def ? onnx_dequantize_of(s->n->in[0]) : NULL;
    ElemType e = dq ? dq->in[0]->type.elem : ELEM_UNDEFINED;
    return moves(s->n) && (e == ELEM_INT8 || e == ELEM_UINT8) &&
           !ort_has_kernel("", s->n->def->name, s->opset, &e, 1) &&
           ort_has_kernel("", s->n->def->name, INT64_MAX, &e, 1);
}
