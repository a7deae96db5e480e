/* NonZero: 13 added a type. Of a number without dimensions the result has no rows, as ONNX has it;
 * NumPy and onnxruntime give one. */
#include "ir/ops/bind.h"

static bool infer(OpCtx *c) {
    Type x = op_type(c, 0);
    Dim dims[] = {x.rank < 0 ? dim_unknown() : dim_of(x.rank), dim_unknown()};
    c->out[0] = type_tensor(ELEM_INT64, 2, arena_copy(c->arena, dims, sizeof dims));
    return true;
}

static int64_t longest(const OpCtx *c) {
    size_t count;
    return type_count(op_type(c, 0), &count) ? (int64_t)count : -1;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Type x = n->in[0]->type;
    ElemType e = bind_elem(n->in[0]);
    qk_nonzero_params p = {.n = bind_count(n->in[0]), .rank = x.rank};
    for (int i = 0; i < x.rank; i++)
        p.dim[i] = (int32_t)x.dims[i].value;
    p.room = (int32_t)bind_bound(b, n, p.n);
    Counted y = {
        .most = (size_t)p.room * (size_t)x.rank, .axis = 1, .count = bind_temp(b, ELEM_INT64, 1)};
    return bind_call(
        b, n, bind_kernel(b, "nonzero", 1, &e), &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[0]), bind_counted(b, n, 0, ELEM_INT64, y), y.count});
}

const OpDef op_NonZero = {
    .domain = "",
    .name = "NonZero",
    .infer = infer,
    .counts = true,
    .longest = longest,
    .bind = bind,
};
