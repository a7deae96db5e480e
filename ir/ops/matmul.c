/* Gemm and MatMul, with QGemm and QLinearMatMul. Gemm: opset 7 made C broadcast, 11 made it
 * optional, 9 and 13 added types. MatMul: only types changed (9, 13). */
#include "ir/ops/overlay.h"
#include "ir/ops/packed.h"

#include <math.h>

enum { A, B, C };

/* A product as the kernels take it: y[batch.., m, n] = a[i, k] . b[k, j] through strides. */
typedef struct Product {
    int32_t rank, dim[MAX_RANK], as[MAX_RANK], bs[MAX_RANK]; /* batch */
    int32_t m, n, k, am, ak, bk, bn;
} Product;
#define PRODUCT_PARAMS(p)                                                                          \
    .m = (p)->m, .n = (p)->n, .k = (p)->k, .am = (p)->am, .ak = (p)->ak, .bk = (p)->bk,            \
    .bn = (p)->bn
/* What Product and the params of the kernels begin with. */
#define COPY_BATCH(q, p) memcpy(&(q), (p), offsetof(Product, m))
_Static_assert(offsetof(qk_matmul_f32_params, m) == offsetof(Product, m) &&
                   offsetof(qk_matmul_i_params, m) == offsetof(Product, m) &&
                   offsetof(qk_matmul_q_params, m) == offsetof(Product, m),
               "copied as it is");

static bool fits(const OpCtx *c, Dim x, Dim y, const char *what) {
    if (dim_differ(x.value, y.value))
        return op_error_in(c, B, "%s: %lld and %lld differ", what, (long long)x.value,
                           (long long)y.value);
    return true;
}

/* ---- binding, for both ---- */

/* Of C in Gemm, which broadcasts to the result. */
static void addend_strides(const Value *c, int32_t *row, int32_t *column) {
    Type t = c ? c->type : type_tensor(ELEM_FLOAT, 0, NULL);
    int32_t last = t.rank > 0 ? (int32_t)t.dims[t.rank - 1].value : 1;
    int32_t rows = t.rank > 1 ? (int32_t)t.dims[t.rank - 2].value : 1;
    *column = last > 1;
    *row = rows > 1 ? last : 0;
}

static bool product_float(Binder *b, const Node *n, const Product *p, const Value *bias,
                          float alpha, float beta) {
    qk_matmul_f32_params q = {PRODUCT_PARAMS(p), .has_c = bias && beta != 0, .alpha = alpha,
                              .beta = beta};
    COPY_BATCH(q, p);
    addend_strides(bias, &q.cm, &q.cn);
    int at[4];
    if (!mac_floats(b, n, q.has_c ? bias : NULL, at))
        return false;
    return bind_matmul(b, n, &q, at) && mac_store(b, n, at);
}

/* Plain integers; factors that are none would leave them. */
static bool product_plain(Binder *b, const Node *n, const Product *p, const Value *bias,
                          float alpha, float beta) {
    const float most = 0x1p24F; /* up to it a float holds all integers */
    ElemType e = bind_elem(n->in[A]);
    beta = bias ? beta : 0;
    if (alpha != floorf(alpha) || beta != floorf(beta) || fabsf(alpha) > most || fabsf(beta) > most)
        return bind_unsupported(b, n, "its alpha and beta are not integers as its operands are");
    qk_matmul_i_params q = {PRODUCT_PARAMS(p), .alpha = (int64_t)alpha, .beta = (int64_t)beta};
    COPY_BATCH(q, p);
    addend_strides(bias, &q.cm, &q.cn);
    return bind_call(b, n, bind_kernel(b, "matmul_i", 1, &e), &q, sizeof q, 4,
                     (int[]){bind_value(b, n->in[A]), bind_value(b, n->in[B]), bind_value(b, bias),
                             bind_value(b, n->out[0])});
}

enum { TILE = 64, FEW_ROWS = 3, LONG = 1 << 20 };

/* Bytes for four columns and so many rows that are widened together: more rows read b less often.
 */
typedef struct Widened {
    size_t columns, row, rows;
} Widened;

/* A few rows are multiplied as they are. */
static Widened widened(const Product *p, const Mac *m) {
    size_t each = (size_t)p->k * (size_t)(elem_bits(m->expand) / 8);
    if (p->m <= FEW_ROWS || p->k > LONG)
        return (Widened){0};
    return (Widened){.columns = 4 * each,
                     .row = each + 4 * (size_t)(elem_bits(m->acc) / 8),
                     .rows = (size_t)(p->m < TILE ? p->m : TILE)};
}

/* As many rows as fit, or four; none where the arena would be larger for them. */
static bool more_widened(Binder *b, Widened w, int scratch) {
    if (w.rows)
        bind_grow(b, scratch, offsetof(qk_matmul_q_params, room), 0, w.columns + 4 * w.row,
                  w.columns + w.rows * w.row);
    return true;
}

/* ---- packed weights ---- */

/* Contiguous rows times one constant matrix; a bias that is the same for all rows. */
static bool packs(Binder *b, const Product *p, const Mac *m, int w, const Beside *o, bool rows) {
    return w >= 0 && bind_buffer(b, w)->kind == BUF_CONST && p->rank == 0 && p->ak == 1 &&
           p->am == p->k && !rows && packed_fits(b, m, 1, p->n, p->k, o);
}

/* More rows read the weights less often. A result over its operand needs one that is
 * kept, as do sums of rows. */
static void more_rows(Binder *b, int32_t m, int32_t row, bool kept, int scratch) {
    size_t one = 2 * (size_t)row, all = (size_t)(m > 1 ? (m + 7) / 8 * 4 : 1) * one;
    bind_grow(b, scratch, offsetof(qk_matmul_packed_q_params, col_bytes), kept ? one : 0, one, all);
}

static bool product_packed(Binder *b, const Node *n, const Product *p, const Mac *m, int from,
                           const Beside *o) {
    const int8_t *w = bind_buffer(b, from)->data;
    int8_t *columns = NEW_ARRAY(binder_arena(b), int8_t, (size_t)p->n *(size_t)p->k);
    for (int32_t j = 0; j < p->n; j++)
        for (int32_t k = 0; k < p->k; k++)
            columns[(size_t)j * (size_t)p->k + (size_t)k] =
                w[(ptrdiff_t)k * p->bk + (ptrdiff_t)j * p->bn];
    Packed packed = packed_bind(b, n, m, columns, 1, p->n, 1, p->k, o);
    int32_t row = 4 * packed.steps, rows = p->m < 8 ? p->m : 8;
    qk_matmul_packed_q_params q = {.m = p->m,
                                   .k = p->k,
                                   .n = p->n,
                                   .steps = packed.steps,
                                   .col_bytes = p->m > 1        ? rows * row
                                                : o->zeros >= 0 ? 2 * row /* of 16 bits */
                                                                : 0,
                                   MAC_RESULT(m)};
    int x = bind_value(b, n->in[A]), y = bind_value(b, n->out[0]);
    int scratch = bind_scratch(b, ELEM_UINT8, (size_t)q.col_bytes);
    if (!packed_call(b, n, "matmul_packed_q", m, &packed, false, (int[]){x, y, scratch}, &q,
                     sizeof q))
        return false;
    int64_t result = (int64_t)p->n * (elem_bits(m->types[2]) / 8); /* bytes a row */
    bool over = p->m > 1 && p->m * result > 2 * row;
    if (over)
        bind_over(b, 0, lead_steps(p->m, p->k, result));
    more_rows(b, p->m, row, over || o->zeros >= 0, scratch);
    return true;
}

static bool product_quant(Binder *b, const Node *n, const Product *p, const Value *bias, int axis,
                          float alpha, float beta) {
    Mac m;
    int add;
    bool no_wz;
    bool rows = bias && bias->type.rank > 1 && bias->type.dims[bias->type.rank - 2].value > 1;
    if (mac_dynamic_refused(b, n, n->in[B]))
        return false;
    if (!mac_prepare(b, n->in[A], n->in[B], n->out[0], axis, (size_t)p->n, p->k, alpha, &m) ||
        !mac_bias(b, &m, bias, rows ? p->m : 1, beta, &add))
        return bind_in_double_as(b, n, m.why);
    qk_matmul_q_params q = {PRODUCT_PARAMS(p), MAC_PARAMS(&m), .az = m.xz, .cm = rows ? p->n : 0,
                            .cn = 1};
    COPY_BATCH(q, p);
    Widened wide = widened(p, &m);
    size_t most = wide.columns + wide.rows * wide.row, least = wide.columns + 4 * wide.row;
    size_t room = bind_room(b, n) < most ? bind_room(b, n) : most;
    q.room = (int32_t)(!wide.rows || room > least ? room : least);
    if (add >= 0 && !value_data(bias)) { /* read as it stands */
        addend_strides(bias, &q.cm, &q.cn);
    }
    int wz = mac_weight_zp(b, &m, 0, &q.bz_step, &no_wz);
    Beside o = {.bias = add, .real = m.dynamic ? bias : NULL, .factor = beta, .zeros = -1};
    int w = m.wbits                               ? packed_small(b, &m, n->in[B], axis)
            : no_wz && elem_is_signed(m.types[1]) ? bind_value(b, n->in[B])
                                                  : packed_signed(b, &m, n->in[B], axis, &o.zeros);
    if (packs(b, p, &m, w, &o, rows))
        return product_packed(b, n, p, &m, w, &o);
    int y = mac_output(b, n, &m, bias), x = mac_input(b, n, &m);
    int weights = m.wbits ? bind_packed(b, n->in[B]) : bind_value(b, n->in[B]);
    int scratch = bind_scratch(b, ELEM_UINT8, (size_t)q.room);
    return mac_call(b, n, &m, "matmul_q", &q, sizeof q, (MacBuffers){x, weights, add, wz, y}, 1,
                    &scratch) &&
           more_widened(b, wide, scratch) && mac_finish(b, n, &m, bias, beta, y);
}

static bool bind_product(Binder *b, const Node *n, const Product *p, const Value *bias, int axis,
                         float alpha, float beta) {
    bind_macs(b, (int64_t)bind_count(n->out[0]) * p->k);
    if (bind_any_quant(n) && mac_fits(n->in[A], n->in[B]))
        return product_quant(b, n, p, bias, axis, alpha, beta);
    if (elem_is_int(n->in[A]->type.elem) && !bind_any_quant(n))
        return product_plain(b, n, p, bias, alpha, beta);
    return product_float(b, n, p, bias, alpha, beta);
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
