/* Operators of floats on plain integers, beyond ONNX's schema. Aidge writes its quantized networks
 * so: Conv of int8 by int8 with sums stated as int32, QuantizeLinear of those sums, MaxPool of
 * int4. Such a model is read and written as it stands; raise-integer-form gives it a meaning that
 * runs. */
#include "ir/ops/op.h"

static bool is_plain(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && !v->type.quant && elem_is_int(v->type.elem);
}

static bool is_narrow(const Value *v) {
    return is_plain(v) && elem_bits(v->type.elem) <= 16;
}

/* Floats of 8 bits and fewer are what QuantizeLinear makes, as integers are. */
static bool is_real(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && elem_is_float(v->type.elem) &&
           elem_bits(v->type.elem) >= 16;
}

static const Value *first_result(const Node *n) {
    return n->n_out ? n->out[0] : NULL;
}

/* Products of integers, or of floats (that are integers) by integers. */
static bool multiplies(const Node *n) {
    const QuantRule *r = &n->def->quant;
    const Value *x = node_input(n, 0), *b = r->mac.bias ? node_input(n, (size_t)r->mac.bias) : NULL;
    return is_narrow(node_input(n, (size_t)r->mac.weight)) && (is_narrow(x) || is_real(x)) &&
           (!b || is_plain(b) || b->type.kind == TYPE_NONE);
}

/* Add, Sub and Mul whose result is stated as wider integers than the operands are. */
static bool widens(const Node *n) {
    const Value *x = node_input(n, 0), *y = node_input(n, 1), *r = first_result(n);
    bool arithmetic = node_is(n, "Add") || node_is(n, "Sub") || node_is(n, "Mul");
    return arithmetic && is_plain(x) && is_plain(y) && is_plain(r) &&
           elem_bits(r->type.elem) > elem_bits(x->type.elem) && elem_bits(r->type.elem) >= 32;
}

static bool is_elem(const Value *v, ElemType e) {
    return v && v->type.kind == TYPE_TENSOR && !v->type.quant && v->type.elem == e;
}

static const Value *fill_of(const Node *n) {
    size_t i = n->def ? (size_t)n->def->quant.move.fill : 0;
    return i ? node_input(n, i) : NULL;
}

bool node_fills_from_double(const Node *n) {
    const Value *fill = fill_of(n);
    return is_elem(node_input(n, 0), ELEM_FLOAT) && is_elem(fill, ELEM_DOUBLE) && value_data(fill);
}

/* Types that it does not take, of what a node made; or Pad of integers by a number of another type.
 */
static bool moves(const Node *n) {
    const OnnxSchema *s = node_schema(n);
    const Value *fill = fill_of(n);
    if (node_fills_from_double(n))
        return true;
    return is_narrow(node_input(n, 0)) && n->in[0]->def && s &&
           (!onnx_schema_allows(s, false, 0, (int)n->in[0]->type.elem) || is_real(fill));
}

static bool converts(const Node *n) {
    const Value *x = node_input(n, 0), *s = node_input(n, 1), *z = node_input(n, 2);
    if (node_is(n, "QuantizeLinear"))
        return n->n_in > 1 && (is_plain(x) || (is_real(x) && (is_plain(s) || is_real(z) ||
                                                              (is_plain(z) && !is_narrow(z)))));
    return node_is(n, "DequantizeLinear") && n->n_in > 1 && is_real(x);
}

/* Before opset 28 ONNX has shifts of unsigned integers alone. */
static bool shifts(const Node *n) {
    const OnnxSchema *s = node_schema(n);
    const Value *x = node_input(n, 0);
    return node_is(n, "BitShift") && s && is_plain(x) && elem_is_signed(x->type.elem) &&
           !onnx_schema_allows(s, false, 0, (int)x->type.elem) &&
           is_elem(node_input(n, 1), x->type.elem);
}

bool node_on_integers(const Node *n) {
    if (!n->def || !domain_is_onnx(n->domain) || node_in_function(n))
        return false;
    switch (n->def->quant.kind) {
    case QUANT_MAC: return n->def->quant.mac.weight && multiplies(n);
    case QUANT_COMPUTE:
        return widens(n) || ((node_is(n, "AveragePool") || node_is(n, "GlobalAveragePool")) &&
                             is_narrow(node_input(n, 0)));
    case QUANT_MOVE:
    case QUANT_ORDER:
    case QUANT_JOIN:
    case QUANT_CLAMP: return moves(n);
    case QUANT_NEVER: break;
    }
    return shifts(n) || converts(n);
}

ElemType node_integer_elem(const Node *n, ElemType inferred) {
    const Value *y = first_result(n);
    bool mac = n->def->quant.kind == QUANT_MAC;
    if (y && is_plain(y) && elem_bits(y->type.elem) >= 32 && (mac || widens(n)))
        return y->type.elem;
    if (!mac)
        return inferred;
    const Value *b = n->def->quant.mac.bias ? node_input(n, (size_t)n->def->quant.mac.bias) : NULL;
    return b && is_plain(b) && elem_bits(b->type.elem) > 32 ? b->type.elem : ELEM_INT32;
}
