/* Trilu: the upper or lower triangle of matrices. */
#include "ir/ops/bind.h"

enum { X, K };

typedef struct TriluAttrs {
    int64_t upper;
} TriluAttrs;

static const AttrSpec attrs[] = {
    A_FLAG(TriluAttrs, upper, 1),
    A_END,
};

static bool verify(const OpCtx *c) {
    Type x = op_type(c, X);
    return x.rank < 0 || x.rank >= 2 || op_error_in(c, X, "needs matrices, not rank %d", x.rank);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const TriluAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    ElemType e = bind_elem(n->in[X]);
    const Tensor *k = op_const(c, K);
    if (bind_any_quant(n)) /* what it fills with is 0, not a zero point */
        return bind_unsupported(b, n, "its operand or result is quantized");
    if (op_in(c, K) && (!k || !k->data || k->count != 1))
        return bind_unsupported(b, n, "its diagonal is not constant");
    qk_trilu_params p = {.batch = bind_extent(x, 0, x.rank - 2),
                         .rows = (int32_t)x.dims[x.rank - 2].value,
                         .columns = (int32_t)x.dims[x.rank - 1].value,
                         .upper = a->upper != 0,
                         .k = k ? tensor_int(k, 0) : 0};
    return bind_first(b, n, bind_kernel(b, "trilu", 1, &e), &p, sizeof p);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)result;
    return i == X && axis < op_type(c, X).rank - 2 ? axis : -1;
}

const OpDef op_Trilu = {
    .domain = "",
    .name = "Trilu",
    .fixed = 1u << K,
    .attrs_size = sizeof(TriluAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .slices = slices,
    .bind = bind,
};
