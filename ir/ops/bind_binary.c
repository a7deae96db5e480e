/* See bind.h: calls of the kernel for two operands, and operands in the parameters of a result. */
#include "ir/ops/bind.h"

BEGINS_WITH_BROADCAST(qk_binary_params);

bool bind_binary(Binder *b, const Node *n, const char *op, ElemType e, Broadcast s,
                 const int args[3]) {
    Str name = arena_strf(binder_arena(b), "binary_%s", op);
    qk_binary_params p;
    memcpy(&p, &s, sizeof s);
    return bind_call(b, n, bind_kernel(b, name.s, 1, &e), &p, sizeof p, 3, args);
}

int bind_joined(Binder *b, const Node *n, const Value *x, bool *ok) {
    return bind_joined_to(b, n, x, n->out[0], ok);
}

int bind_joined_to(Binder *b, const Node *n, const Value *x, const Value *y, bool *ok) {
    const Quant *q = op_quant(y);
    if (!q || bind_equal_quant(x, y))
        return bind_value(b, x);
    int32_t lo, hi;
    int temp = bind_temp(b, bind_elem(y), (size_t)bind_count(x));
    quant_range(q, &lo, &hi);
    *ok = bind_requantize(b, n, x, bind_value(b, x), q, temp, lo, hi) && *ok;
    return temp;
}
