/* com.microsoft FusedMatMul: MatMul of operands that may be transposed in their last two
 * dimensions, or have the first one moved to where rows are, times alpha. Float only: onnxruntime's
 * optimizer makes it of float nodes. */
#include "ir/ops/bind.h"

enum { A, B };

typedef struct FusedAttrs {
    float alpha;
    int64_t transA, transB, transBatchA, transBatchB;
} FusedAttrs;

static const AttrSpec attrs[] = {
    A_FLOAT(FusedAttrs, alpha, 1.0f),   A_FLAG(FusedAttrs, transA, 0),
    A_FLAG(FusedAttrs, transB, 0),      A_FLAG(FusedAttrs, transBatchA, 0),
    A_FLAG(FusedAttrs, transBatchB, 0), A_END,
};

/* The operand's axis that is axis `k` of the stack of matrices that it stands for. transBatch moves
 * axis 0 to where rows are, trans turns rows and columns after that. Ranks of 2 and more. */
static int axis_of(const OpCtx *c, size_t i, int k) {
    const FusedAttrs *f = c->attrs;
    int rank = op_type(c, i).rank;
    if ((i == A ? f->transA : f->transB) && k >= rank - 2)
        k = 2 * rank - 3 - k;
    if (!(i == A ? f->transBatchA : f->transBatchB) || k == rank - 1)
        return k;
    return k == rank - 2 ? 0 : k + 1;
}

static Dim stack_dim(const OpCtx *c, size_t i, int k) {
    return op_type(c, i).dims[axis_of(c, i, k)];
}

static bool verify(const OpCtx *c) {
    const FusedAttrs *f = c->attrs;
    Type a = op_type(c, A), b = op_type(c, B);
    bool known = a.rank >= 0 && b.rank >= 0;
    if (known && (f->transBatchA || f->transBatchB) && (a.rank < 3 || a.rank != b.rank))
        return op_error_in(c, B,
                           "batches of %s and %s are not transposed: transBatchA and "
                           "transBatchB take operands of one rank, at least 3",
                           type_text(c->arena, a), type_text(c->arena, b));
    return true;
}

static bool infer(OpCtx *c) {
    Type a = op_type(c, A), b = op_type(c, B);
    if (a.rank < 2 || b.rank < 2)
        return true; /* not in a form that can run; the type stays open */
    Dim ak = stack_dim(c, A, a.rank - 1), bk = stack_dim(c, B, b.rank - 2);
    if (dim_differ(ak.value, bk.value))
        return op_error_in(c, B, "the dimensions summed over: %lld and %lld differ",
                           (long long)ak.value, (long long)bk.value);
    int rank = a.rank > b.rank ? a.rank : b.rank;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank);
    for (int i = 0; i < rank - 2; i++) {
        int ai = i - (rank - a.rank), bi = i - (rank - b.rank);
        Dim one = dim_of(1);
        if (!dim_broadcast(ai < 0 ? one : stack_dim(c, A, ai), bi < 0 ? one : stack_dim(c, B, bi),
                           &dims[i]))
            return op_error_in(c, B, "batch dimensions of %s and %s do not broadcast",
                               type_text(c->arena, a), type_text(c->arena, b));
    }
    dims[rank - 2] = stack_dim(c, A, a.rank - 2);
    dims[rank - 1] = stack_dim(c, B, b.rank - 1);
    c->out[0] = type_tensor(type_real_elem(a), rank, dims);
    return true;
}

/* Elements between neighbours along axis `k` of the stack. */
static int32_t stack_stride(const OpCtx *c, size_t i, int k) {
    Type t = op_type(c, i);
    int64_t step = 1;
    for (int axis = axis_of(c, i, k) + 1; axis < t.rank; axis++)
        step *= t.dims[axis].value;
    return (int32_t)step;
}

static void batch_strides(const OpCtx *c, size_t i, int batch, int32_t *stride) {
    int fewer = batch - (op_type(c, i).rank - 2);
    for (int k = 0; k < batch; k++)
        stride[k] =
            k < fewer || stack_dim(c, i, k - fewer).value == 1 ? 0 : stack_stride(c, i, k - fewer);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const FusedAttrs *f = c->attrs;
    int xr = op_type(c, A).rank, wr = op_type(c, B).rank;
    Type y = n->out[0]->type;
    if (!bind_floats_only(b, n))
        return false;
    if (xr < 2 || wr < 2)
        return bind_unsupported(b, n, "an operand of rank 1 has no kernel");
    qk_matmul_f32_params p = {.rank = y.rank - 2,
                              .m = (int32_t)y.dims[y.rank - 2].value,
                              .n = (int32_t)y.dims[y.rank - 1].value,
                              .k = (int32_t)stack_dim(c, A, xr - 1).value,
                              .am = stack_stride(c, A, xr - 2),
                              .ak = stack_stride(c, A, xr - 1),
                              .bk = stack_stride(c, B, wr - 2),
                              .bn = stack_stride(c, B, wr - 1),
                              .alpha = f->alpha,
                              .beta = 1};
    for (int i = 0; i < p.rank; i++)
        p.dim[i] = (int32_t)y.dims[i].value;
    batch_strides(c, A, p.rank, p.as);
    batch_strides(c, B, p.rank, p.bs);
    bind_macs(b, dim_mul(bind_count(n->out[0]), p.k));
    int args[] = {bind_value(b, n->in[A]), bind_value(b, n->in[B]), -1, bind_value(b, n->out[0])};
    return bind_matmul(b, n, &p, args);
}

/* Of stacks of matrices, of rows of the first and columns of the second. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    int rank = op_type(c, i).rank, summed = i == A ? rank - 1 : rank - 2, k = 0;
    while (k < rank && axis_of(c, i, k) != axis)
        k++;
    return k < rank && k != summed ? op_slices_each(c, i, k, result) : -1;
}

const OpDef op_FusedMatMul = {
    .domain = "com.microsoft",
    .name = "FusedMatMul",
    .attrs_size = sizeof(FusedAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
