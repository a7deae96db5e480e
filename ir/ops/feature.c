/* ai.onnx.ml ArrayFeatureExtractor: elements of the last axis, by their numbers. */
#include "ir/ops/bind.h"

enum { X, INDICES };

static bool verify(const OpCtx *c) {
    Type x = op_type(c, X);
    int32_t length =
        x.rank > 0 && x.dims[x.rank - 1].value >= 0 && x.dims[x.rank - 1].value <= INT32_MAX
            ? (int32_t)x.dims[x.rank - 1].value
            : -1;
    const Tensor *t = op_const(c, INDICES);
    if (x.rank == 0)
        return op_error_in(c, X, "a scalar has no features");
    for (size_t k = 0; t && t->data && length >= 0 && k < t->count; k++)
        if (tensor_int(t, k) < 0 || tensor_int(t, k) >= length)
            return op_error_in(c, INDICES, "there is no feature %lld among %d",
                               (long long)tensor_int(t, k), length);
    return true;
}

/* Of one dimension there is one row. */
static bool infer(OpCtx *c) {
    Type x = op_type(c, X), at = op_type(c, INDICES);
    size_t count;
    if (x.kind != TYPE_TENSOR)
        return true;
    int rank = x.rank == 1 ? 2 : x.rank;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)(rank < 0 ? 0 : rank) + 1);
    for (int i = 0; i + 1 < rank; i++)
        dims[i] = x.rank == 1 ? dim_of(1) : x.dims[i];
    if (rank > 0)
        dims[rank - 1] = type_count(at, &count) ? dim_of((int64_t)count) : dim_unknown();
    c->out[0] = type_tensor(type_real_elem(x), rank, rank < 0 ? NULL : dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    if (bind_any_quant(n))
        return bind_unsupported(b, n, "its operand or result is quantized");
    return bind_gather(b, n, op_type(c, X).rank - 1, false);
}

const OpDef op_ArrayFeatureExtractor = {
    .domain = "ai.onnx.ml",
    .name = "ArrayFeatureExtractor",
    .verify = verify,
    .infer = infer,
    .picks = 1u << INDICES,
    .bind = bind,
};
