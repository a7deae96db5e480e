/* Det: determinants of the matrices that the last two axes are. Only types changed. */
#include "ir/ops/bind.h"

static bool verify(const OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.rank < 0)
        return true;
    if (x.rank < 2)
        return op_error_in(c, 0, "input must have rank 2 or more, not %d", x.rank);
    int64_t rows = x.dims[x.rank - 2].value, columns = x.dims[x.rank - 1].value;
    return rows < 0 || columns < 0 || rows == columns ||
           op_error_in(c, 0, "a matrix of %lld rows and %lld columns has no determinant",
                       (long long)rows, (long long)columns);
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(type_real_elem(x), x.rank < 2 ? -1 : x.rank - 2,
                                x.rank < 2 ? NULL : x.dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Type x = n->in[0]->type;
    if (!bind_floats_only(b, n))
        return false;
    qk_det_f32_params p = {.batch = bind_count(n->out[0]), .n = (int32_t)x.dims[x.rank - 1].value};
    int work = bind_scratch(b, bind_real(b), (size_t)p.n * (size_t)p.n);
    return bind_call(b, n, "qk_det_f32", &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0]), work});
}

/* Matrices one by one. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)i;
    (void)result;
    return axis < op_type(c, 0).rank - 2 ? axis : -1;
}

const OpDef op_Det = {
    .domain = "",
    .name = "Det",
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
