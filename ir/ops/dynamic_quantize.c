/* DynamicQuantizeLinear: uint8 with the scale and zero point of the numbers at hand. Opset 11.
 * Where a product reads the integers, passes raise it to QuantizeLinear of type uint8q<dynamic>;
 * what they leave runs as it stands. */
#include "ir/ops/bind.h"

static bool infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(ELEM_UINT8, x.rank, x.dims);
    if (c->n_out > 1)
        c->out[1] = type_tensor(ELEM_FLOAT, 0, NULL);
    if (c->n_out > 2)
        c->out[2] = type_tensor(ELEM_UINT8, 0, NULL);
    return true;
}

/* A result that nobody asked for needs memory all the same. */
static int result(Binder *b, const Node *n, size_t i, ElemType e, size_t count) {
    return i < n->n_out && n->out[i] ? bind_value(b, n->out[i]) : bind_temp(b, e, count);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    int64_t count = bind_count(n->in[0]);
    qk_dynquantize_params p = {.n = count};
    return bind_call(b, n, "qk_dynquantize", &p, sizeof p, 4,
                     (int[]){bind_value(b, n->in[0]), result(b, n, 0, ELEM_UINT8, (size_t)count),
                             result(b, n, 1, ELEM_FLOAT, 1), result(b, n, 2, ELEM_UINT8, 1)});
}

const OpDef op_DynamicQuantizeLinear = {
    .domain = "",
    .name = "DynamicQuantizeLinear",
    .stays = true,
    .infer = infer,
    .bind = bind,
};
