/* Where and QLinearWhere: one of two values, chosen element by element. Only types changed (16). On
 * integers both are brought to the result's parameters first. */
#include "ir/ops/bind.h"

enum { CONDITION, X, Y };

static bool infer(OpCtx *c) {
    Type x = op_type(c, X);
    if (x.kind != TYPE_TENSOR)
        return true;
    if (!op_broadcast(c))
        return false;
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = type_real_elem(x); /* not the condition's */
    return true;
}

static bool fits_kernel(const Node *n) {
    const Quant *x = op_quant(n->in[X]), *y = op_quant(n->in[Y]), *z = op_quant(n->out[0]);
    if (!x && !y && !z)
        return true;
    return quant_plain(x) && quant_plain(y) && quant_plain(z);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Type y = n->out[0]->type;
    ElemType e = bind_elem(n->out[0]);
    bool ok = true;
    if (!fits_kernel(n))
        return bind_in_double(b, n);
    qk_where_params p = {.rank = y.rank};
    bind_strides(n->in[CONDITION]->type, y.rank, p.cs);
    bind_strides(n->in[X]->type, y.rank, p.as);
    bind_strides(n->in[Y]->type, y.rank, p.bs);
    for (int i = 0; i < y.rank; i++)
        p.dim[i] = (int32_t)y.dims[i].value;
    int args[] = {bind_value(b, n->in[CONDITION]), bind_joined(b, n, n->in[X], &ok),
                  bind_joined(b, n, n->in[Y], &ok), bind_value(b, n->out[0])};
    return ok && bind_call(b, n, bind_kernel(b, "where", 1, &e), &p, sizeof p, 4, args);
}

const OpDef op_Where = {
    .domain = "",
    .name = "Where",
    .infer = infer,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_JOIN, .data = 1u << X | 1u << Y, .selects = true},
    .qop = {.domain = "com.microsoft", .op = "QLinearWhere", .operands = "0 1* 2* y", .since = 10},
    .bind = bind,
};
