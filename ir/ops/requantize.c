/* qxc::Requantize: from one quantized type to another, in one rounding. ONNX has no such operator;
 * there it is DequantizeLinear and QuantizeLinear.
 *
 * qxc::Reinterpret: the same integers, of another quantized type. In ONNX nothing stands there: one
 * QuantizeLinear makes the integers, and a DequantizeLinear of another scale reads them. */
#include "ir/ops/bind.h"

static bool always(const Node *n) {
    (void)n;
    return true;
}

static bool verify(const OpCtx *c) {
    Type x = op_type(c, 0), y = c->n_out && c->node->out[0] ? c->node->out[0]->type : TYPE_UNKNOWN;
    if (c->n_in != 1 || c->n_out != 1 || !op_in(c, 0))
        return op_error(c, "takes one operand and has one result");
    if (!type_is_quantized(x))
        return op_error_in(c, 0, "operand and result must have quantized types");
    if (!type_is_quantized(y))
        return op_error_out(c, 0, "operand and result must have quantized types");
    return true;
}

static bool verify_reinterpret(const OpCtx *c) {
    if (!verify(c))
        return false;
    const Quant *x = c->node->in[0]->type.quant, *y = c->node->out[0]->type.quant;
    if (x->kind != QUANT_PARAMS || y->kind != QUANT_PARAMS)
        return op_error_in(c, 0, "parameters of operand and result must be known");
    return x->storage == y->storage ||
           op_error_out(c, 0, "integers are %s in the operand, %s in the result",
                        elem_name(x->storage), elem_name(y->storage));
}

static bool bind_reinterpret(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_alias(b, n, n->out[0], n->in[0]);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const Value *x = n->in[0], *y = n->out[0];
    (void)c;
    if (bind_equal_quant(x, y))
        return bind_alias(b, n, y, x);
    int32_t lo, hi;
    if (!quant_plain(op_quant(x)) || !quant_plain(op_quant(y)))
        return bind_in_double(b, n);
    quant_range(op_quant(y), &lo, &hi);
    int from, to;
    bind_each(b, n, x, y, &from, &to);
    return bind_requantize(b, n, x, from, op_quant(y), to, lo, hi);
}

const OpDef op_Requantize = {
    .domain = "qxc",
    .name = "Requantize",
    .verify = verify,
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_COMPUTE, .data = 1},
    .conversion = CONVERT_REQUANTIZE,
    .stays = true,
    .own_form = always,
    .bind = bind,
};

const OpDef op_Reinterpret = {
    .domain = "qxc",
    .name = "Reinterpret",
    .verify = verify_reinterpret,
    .infer = op_same_type,
    .slices = op_slices_each,
    .conversion = CONVERT_REINTERPRET,
    .stays = true,
    .own_form = always,
    .bind = bind_reinterpret,
};
