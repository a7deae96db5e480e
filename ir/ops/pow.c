/* Pow. From opset 7 operands broadcast; 12: the exponent may have another type. With one constant
 * exponent it is a table on 8-bit integers. */
#include "ir/ops/bind.h"

#include <math.h>

enum { X, EXPONENT };

static const Tensor *single_exponent(const OpCtx *c) {
    const Tensor *t = op_const(c, EXPONENT);
    return t && t->data && t->count == 1 && t->rank <= 1 ? t : NULL;
}

static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    (void)x;
    return single_exponent(c) ? NULL : "its exponent is not one constant";
}

static float power(float x, const void *ctx) {
    return (float)pow((double)x, *(const double *)ctx);
}

/* The exponent as float: a constant may have any type. */
static int exponent(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *t = op_const(c, EXPONENT);
    if (n->in[EXPONENT]->type.elem == bind_real(b) || !t || !t->data)
        return bind_value(b, n->in[EXPONENT]);
    double *data = NEW_ARRAY(binder_arena(b), double, t->count);
    for (size_t i = 0; i < t->count; i++)
        data[i] = tensor_float(t, i);
    return bind_reals(b, t->count, data, "exponent");
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *t = single_exponent(c);
    double e = t ? tensor_float(t, 0) : 0;
    if (op_quant(n->in[X]))
        return t ? bind_table(b, n, power, &e) : bind_in_double(b, n);
    if (op_quant(n->out[0]) || n->in[X]->type.elem != bind_real(b) ||
        (n->in[EXPONENT]->type.elem != bind_real(b) && !op_const(c, EXPONENT)))
        return bind_unsupported(b, n, "%s to the power of %s; only float has a kernel",
                                elem_name(n->in[X]->type.elem),
                                elem_name(n->in[EXPONENT]->type.elem));
    Broadcast s = bind_broadcast(n->in[X]->type, n->in[EXPONENT]->type, n->out[0]->type);
    return bind_binary(
        b, n, "pow", ELEM_FLOAT, s,
        (int[]){bind_value(b, n->in[X]), exponent(b, n, c), bind_value(b, n->out[0])});
}

const OpDef op_Pow = {
    .domain = "",
    .name = "Pow",
    .infer = op_broadcast,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1u << X,
              .curve = true,
              .prefers_float = SPANS_TOO_MUCH,
              .integer_refusal = integer_refusal},
    .bind = bind,
};
