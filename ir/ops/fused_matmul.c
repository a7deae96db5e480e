/* com.microsoft FusedMatMul: MatMul of operands that may be transposed in their last two
 * dimensions, times alpha. Float only: onnxruntime's optimizer makes it of float nodes. */
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

static bool infer(OpCtx *c) {
    const FusedAttrs *f = c->attrs;
    Type a = op_type(c, A), b = op_type(c, B);
    if (a.rank < 2 || b.rank < 2 || f->transBatchA || f->transBatchB)
        return true; /* not in a form that can run; the type stays open */
    Dim ak = a.dims[a.rank - 1 - (f->transA != 0)], bk = b.dims[b.rank - 2 + (f->transB != 0)];
    if (dim_differ(ak.value, bk.value))
        return op_error_in(c, B, "the dimensions summed over: %lld and %lld differ",
                           (long long)ak.value, (long long)bk.value);
    int rank = a.rank > b.rank ? a.rank : b.rank;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank);
    for (int i = 0; i < rank - 2; i++) {
        int ai = i - (rank - a.rank), bi = i - (rank - b.rank);
        Dim one = dim_of(1);
        if (!dim_broadcast(ai < 0 ? one : a.dims[ai], bi < 0 ? one : b.dims[bi], &dims[i]))
            return op_error_in(c, B, "batch dimensions of %s and %s do not broadcast",
                               type_text(c->arena, a), type_text(c->arena, b));
    }
    dims[rank - 2] = a.dims[a.rank - 2 + (f->transA != 0)];
    dims[rank - 1] = b.dims[b.rank - 1 - (f->transB != 0)];
    c->out[0] = type_tensor(type_real_elem(a), rank, dims);
    return true;
}

static void batch_strides(Type t, int batch, int32_t *stride) {
    int64_t step = t.dims[t.rank - 1].value * t.dims[t.rank - 2].value;
    for (int i = batch - 1; i >= 0; i--) {
        int k = i - (batch - (t.rank - 2));
        int64_t dim = k < 0 ? 1 : t.dims[k].value;
        stride[i] = dim == 1 ? 0 : (int32_t)step;
        step *= dim;
    }
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const FusedAttrs *f = c->attrs;
    Type x = n->in[A]->type, w = n->in[B]->type, y = n->out[0]->type;
    if (!bind_floats_only(b, n))
        return false;
    if (x.rank < 2 || w.rank < 2 || f->transBatchA || f->transBatchB)
        return bind_unsupported(b, n, "transBatch or an operand of rank 1 has no kernel");
    int32_t xc = (int32_t)x.dims[x.rank - 1].value, wc = (int32_t)w.dims[w.rank - 1].value;
    qk_matmul_f32_params p = {.rank = y.rank - 2,
                              .m = (int32_t)y.dims[y.rank - 2].value,
                              .n = (int32_t)y.dims[y.rank - 1].value,
                              .k = f->transA ? (int32_t)x.dims[x.rank - 2].value : xc,
                              .am = f->transA ? 1 : xc,
                              .ak = f->transA ? xc : 1,
                              .bk = f->transB ? 1 : wc,
                              .bn = f->transB ? wc : 1,
                              .alpha = f->alpha,
                              .beta = 1};
    for (int i = 0; i < p.rank; i++)
        p.dim[i] = (int32_t)y.dims[i].value;
    batch_strides(x, p.rank, p.as);
    batch_strides(w, p.rank, p.bs);
    bind_macs(b, dim_mul(bind_count(n->out[0]), p.k));
    int args[] = {bind_value(b, n->in[A]), bind_value(b, n->in[B]), -1, bind_value(b, n->out[0])};
    return bind_matmul(b, n, &p, args);
}

/* Of stacks of matrices, of rows of the first and columns of the second. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const FusedAttrs *f = c->attrs;
    int rank = op_type(c, i).rank;
    if (axis < rank - 2)
        return op_slices_each(c, i, axis, result);
    int kept = i == A ? rank - 2 + (f->transA != 0) : rank - 1 - (f->transB != 0);
    return axis == kept ? op_slices_each(c, i, i == A ? rank - 2 : rank - 1, result) : -1;
}

const OpDef op_FusedMatMul = {
    .domain = "com.microsoft",
    .name = "FusedMatMul",
    .attrs_size = sizeof(FusedAttrs),
    .attrs = attrs,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
