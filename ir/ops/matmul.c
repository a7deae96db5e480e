/* Gemm and MatMul, with QGemm and QLinearMatMul. Gemm: opset 7 made C broadcast, 11 made it
 * optional, 9 and 13 added types. MatMul: only types changed (9, 13). */
#include "ir/ops/matmul_bind.h"
#include "ir/ops/op.h"

enum { A, B, C };

static bool fits(const OpCtx *c, Dim x, Dim y, const char *what) {
    if (dim_differ(x.value, y.value))
        return op_error_in(c, B, "%s: %lld and %lld differ", what, (long long)x.value,
                           (long long)y.value);
    return true;
}

/* ---- Gemm ---- */

typedef struct GemmAttrs {
    float alpha, beta;
    int64_t transA, transB;
} GemmAttrs;

static const AttrSpec gemm_attrs[] = {
    A_FLOAT(GemmAttrs, alpha, 1.0f),
    A_FLOAT(GemmAttrs, beta, 1.0f),
    A_FLAG(GemmAttrs, transA, 0),
    A_FLAG(GemmAttrs, transB, 0),
    A_END,
};

static bool gemm_verify(const OpCtx *c) {
    const GemmAttrs *g = c->attrs;
    Type a = op_type(c, A), b = op_type(c, B), bias = op_type(c, C);
    if ((a.rank >= 0 && a.rank != 2) || (b.rank >= 0 && b.rank != 2))
        return op_error_in(c, a.rank >= 0 && a.rank != 2 ? A : B,
                           "operands must be matrices, not of rank %d and %d", a.rank, b.rank);
    if (a.rank != 2 || b.rank != 2)
        return true;
    if (!fits(c, a.dims[!g->transA], b.dims[g->transB != 0], "the dimensions summed over"))
        return false;
    if (bias.rank > 2)
        return op_error_in(c, C, "C must have rank 2 or less, not %d", bias.rank);
    Dim out[] = {a.dims[g->transA != 0], b.dims[!g->transB]};
    for (int i = 0; bias.rank >= 0 && i < bias.rank; i++) {
        Dim d = bias.dims[i], y = out[2 - bias.rank + i];
        if (d.value >= 0 && d.value != 1 && y.value >= 0 && d.value != y.value)
            return op_error_in(c, C, "C does not broadcast to the result: %lld and %lld differ",
                               (long long)d.value, (long long)y.value);
    }
    return true;
}

static bool gemm_infer(OpCtx *c) {
    const GemmAttrs *g = c->attrs;
    Type a = op_type(c, A), b = op_type(c, B);
    bool a_known = a.rank == 2, b_known = b.rank == 2;
    if ((!a_known && a.rank >= 0) || (!b_known && b.rank >= 0))
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 2);
    dims[0] = a_known ? a.dims[g->transA != 0] : dim_unknown();
    dims[1] = b_known ? b.dims[!g->transB] : dim_unknown();
    c->out[0] = type_tensor(type_real_elem(a), 2, dims);
    return true;
}

static int gemm_weight_axis(const OpCtx *c) {
    const GemmAttrs *g = c->attrs;
    return g->transB ? 0 : 1;
}

/* QGemm has no beta, and its alpha multiplies C as well. */
static bool gemm_applies(const OpCtx *c, const char **why) {
    const GemmAttrs *g = c->attrs;
    if (op_in(c, C) && g->beta != g->alpha) {
        *why = "alpha and beta differ";
        return false;
    }
    return true;
}

static void gemm_lower(const Node *from, Node *to) {
    (void)from;
    node_drop_attr(to, "beta");
}

static void gemm_raise(const Node *from, Node *to) {
    float alpha = node_float(from, "alpha", 1.0f);
    if (alpha != 1.0f)
        node_set_float(to, "beta", alpha);
}

static bool gemm_sums(const OpCtx *c, MacSums *s) {
    const GemmAttrs *g = c->attrs;
    Type a = op_type(c, A);
    *s = (MacSums){1, .positions = a.dims[g->transA != 0].value, .terms = a.dims[!g->transA].value};
    return true;
}

static void gemm_terms(const OpCtx *c, const MacSums *s, const float *x, int64_t position,
                       float *out) {
    const GemmAttrs *g = c->attrs;
    for (int64_t k = 0; k < s->terms; k++)
        out[k] = g->transA ? x[k * s->positions + position] : x[position * s->terms + k];
}

static int gemm_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const GemmAttrs *g = c->attrs;
    if (i == C)
        return op_slices_each(c, i, axis, result);
    if (i == A)
        return axis == (g->transA != 0) ? 0 : -1;
    return i == B && axis == !g->transB ? 1 : -1;
}

static bool gemm_bind(Binder *b, const Node *n, const OpCtx *c) {
    const GemmAttrs *g = c->attrs;
    Type x = n->in[A]->type, w = n->in[B]->type;
    int32_t xc = (int32_t)x.dims[1].value, wc = (int32_t)w.dims[1].value;
    Product p = {.m = (int32_t)x.dims[g->transA != 0].value,
                 .k = (int32_t)x.dims[!g->transA].value,
                 .n = (int32_t)w.dims[!g->transB].value,
                 .am = g->transA ? 1 : xc,
                 .ak = g->transA ? xc : 1,
                 .bk = g->transB ? 1 : wc,
                 .bn = g->transB ? wc : 1};
    return bind_product(b, n, &p, op_in(c, C), gemm_weight_axis(c), g->alpha, g->beta);
}

const OpDef op_Gemm = {
    .domain = "",
    .name = "Gemm",
    .attrs_size = sizeof(GemmAttrs),
    .attrs = gemm_attrs,
    .verify = gemm_verify,
    .infer = gemm_infer,
    .slices = gemm_slices,
    .quant = {.kind = QUANT_MAC,
              .data = 1u << A,
              .mac.weight = B,
              .mac.bias = C,
              .mac.takes_dynamic = true,
              .mac.weight_axis = gemm_weight_axis,
              .mac.sums = gemm_sums,
              .mac.terms = gemm_terms,
              .mac.weight_factor = "alpha",
              .mac.bias_factor = "beta"},
    .qop = {.domain = "com.microsoft",
            .op = "QGemm",
            .operands = "0* 1* 2 y",
            .since = 10,
            .applies = gemm_applies,
            .lower_attrs = gemm_lower,
            .raise_attrs = gemm_raise},
    .bind = gemm_bind,
};

/* ---- MatMul ---- */

static bool matmul_infer(OpCtx *c) {
    Type a = op_type(c, A), b = op_type(c, B);
    if (a.rank == 0 || b.rank == 0)
        return op_error_in(c, a.rank == 0 ? A : B, "operands cannot be scalars");
    if (a.rank < 0 || b.rank < 0)
        return true;
    Dim one = dim_of(1);
    Dim ak = a.dims[a.rank - 1], bk = b.rank > 1 ? b.dims[b.rank - 2] : b.dims[0];
    if (!fits(c, ak, bk, "the dimensions summed over"))
        return false;
    /* Batch dimensions broadcast; a vector operand adds no dimension to the result. */
    Type x = type_tensor(ELEM_FLOAT, a.rank > 2 ? a.rank - 2 : 0, a.dims);
    Type y = type_tensor(ELEM_FLOAT, b.rank > 2 ? b.rank - 2 : 0, b.dims);
    int rank = x.rank > y.rank ? x.rank : y.rank;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 2);
    for (int i = 0; i < rank; i++) {
        int xi = i - (rank - x.rank), yi = i - (rank - y.rank);
        if (!dim_broadcast(xi < 0 ? one : x.dims[xi], yi < 0 ? one : y.dims[yi], &dims[i]))
            return op_error_in(c, B, "batch dimensions of %s and %s do not broadcast",
                               type_text(c->arena, a), type_text(c->arena, b));
    }
    if (a.rank > 1)
        dims[rank++] = a.dims[a.rank - 2];
    if (b.rank > 1)
        dims[rank++] = b.dims[b.rank - 1];
    c->out[0] = type_tensor(type_real_elem(a), rank, dims);
    return true;
}

static int matmul_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    Type x = op_type(c, i), other = op_type(c, i == A ? B : A);
    int summed = i == A || x.rank < 2 ? x.rank - 1 : x.rank - 2;
    if (i > B || axis == summed || other.rank < 2)
        return i == A && other.rank == 1 && axis < summed ? axis : -1;
    return op_slices_each(c, i, axis, result);
}

/* Columns of one matrix. QLinearMatMul has no parameters per column for a stack of them. */
static int matmul_weight_axis(const OpCtx *c) {
    return op_type(c, B).rank == 2 ? 1 : -1;
}

/* Rows of A by one matrix B. */
static bool matmul_sums(const OpCtx *c, MacSums *s) {
    Type a = op_type(c, A);
    if (a.rank < 1 || op_type(c, B).rank != 2)
        return false;
    *s = (MacSums){1, .positions = 1, .terms = a.dims[a.rank - 1].value};
    for (int i = 0; i + 1 < a.rank; i++)
        s->positions *= a.dims[i].value;
    return true;
}

static void matmul_terms(const OpCtx *c, const MacSums *s, const float *x, int64_t position,
                         float *out) {
    (void)c;
    memcpy(out, x + position * s->terms, (size_t)s->terms * sizeof *x);
}

static void batch_strides(Type t, int rank, int32_t *stride) {
    int batch = t.rank > 2 ? t.rank - 2 : 0;
    int64_t step = t.rank > 1 ? t.dims[t.rank - 1].value * t.dims[t.rank - 2].value : 0;
    for (int i = rank - 1; i >= 0; i--) {
        int k = i - (rank - batch);
        int64_t dim = k < 0 ? 1 : t.dims[k].value;
        stride[i] = dim == 1 ? 0 : (int32_t)step;
        step *= dim;
    }
}

static bool matmul_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[A]->type, w = n->in[B]->type, y = n->out[0]->type;
    Product p = {.k = (int32_t)x.dims[x.rank - 1].value,
                 .m = x.rank > 1 ? (int32_t)x.dims[x.rank - 2].value : 1,
                 .n = w.rank > 1 ? (int32_t)w.dims[w.rank - 1].value : 1,
                 .ak = 1,
                 .bn = w.rank > 1};
    p.am = p.k;
    p.bk = p.n;
    p.rank = y.rank - (x.rank > 1) - (w.rank > 1);
    for (int i = 0; i < p.rank; i++)
        p.dim[i] = (int32_t)y.dims[i].value;
    batch_strides(x, p.rank, p.as);
    batch_strides(w, p.rank, p.bs);
    bool one_b = true; /* the same B for the whole batch: one tall product */
    for (int i = 0; i < p.rank; i++)
        one_b = one_b && p.bs[i] == 0;
    if (one_b && p.rank == (x.rank > 2 ? x.rank - 2 : 0)) {
        for (int i = 0; i < p.rank; i++)
            p.m *= p.dim[i];
        p.rank = 0;
    }
    return bind_product(b, n, &p, NULL, matmul_weight_axis(c), 1.0f, 1.0f);
}

const OpDef op_MatMul = {
    .domain = "",
    .name = "MatMul",
    .infer = matmul_infer,
    .slices = matmul_slices,
    .quant = {.kind = QUANT_MAC,
              .data = 1u << A | 1u << B,
              .mac.weight = B,
              .mac.takes_dynamic = true,
              .mac.weight_axis = matmul_weight_axis,
              .mac.sums = matmul_sums,
              .mac.terms = matmul_terms},
    .qop = {.domain = "", .op = "QLinearMatMul", .operands = "0* 1* y", .since = 10},
    .bind = matmul_bind,
};
