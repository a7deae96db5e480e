/* See matmul_bind.h. */
#include "ir/ops/matmul_bind.h"
#include "ir/ops/overlay.h"
#include "ir/ops/packed.h"

#include <math.h>

enum { A, B, C };

#define PRODUCT_PARAMS(p)                                                                          \
    .m = (p)->m, .n = (p)->n, .k = (p)->k, .am = (p)->am, .ak = (p)->ak, .bk = (p)->bk,            \
    .bn = (p)->bn
/* What Product and the params of the kernels begin with. */
#define COPY_BATCH(q, p) memcpy(&(q), (p), offsetof(Product, m))
_Static_assert(offsetof(qk_matmul_f32_params, m) == offsetof(Product, m) &&
                   offsetof(qk_matmul_i_params, m) == offsetof(Product, m) &&
                   offsetof(qk_matmul_q_params, m) == offsetof(Product, m) &&
                   offsetof(qk_matmul_pair_q_params, m) == offsetof(Product, m),
               "copied as it is");

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

/* ---- two values ---- */

typedef struct PairRoom {
    size_t least, most;
} PairRoom;

/* Bytes for 16 or 32 columns and 8 rows of two bytes an element, as kernels/matmul/matmul_pair_q.qk
 * lays them out. */
static PairRoom pair_room(const Product *p) {
    size_t steps = ((size_t)p->k + 3) / 4 * 4;
    return (PairRoom){.least = 32 * steps, .most = 48 * steps};
}

/* Rows of a value times columns of another, each with one zero point, where packing them takes
 * little memory beside them. Few rows are multiplied as they are. What depends on lengths cannot be
 * chosen where a run tells them. */
static bool pairs(const Binder *b, const Product *p, const Mac *m, const Value *w,
                  const Value *bias) {
    size_t batches = 1;
    for (int i = 0; i < p->rank; i++)
        batches *= (size_t)p->dim[i];
    size_t bytes = batches * ((size_t)p->m * (size_t)p->k + (size_t)p->k * (size_t)p->n +
                              (size_t)p->m * (size_t)p->n);
    return !bind_any_length(b) && !value_data(w) && !bias && !m->dynamic && !m->wbits &&
           m->m_step == 0 && m->w->n_zp <= 1 && m->acc == ELEM_INT32 &&
           elem_bits(m->types[0]) == 8 && elem_bits(m->types[1]) == 8 &&
           (m->types[2] == ELEM_FLOAT || elem_bits(m->types[2]) == 8) && p->ak == 1 &&
           p->m > FEW_ROWS && p->k > 0 && p->k <= PACKED_MOST_TERMS &&
           pair_room(p).least <= bytes / 4;
}

static bool product_pair(Binder *b, const Node *n, const Product *p, const Mac *m) {
    PairRoom room = pair_room(p);
    qk_matmul_pair_q_params q = {.m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .room = (int32_t)room.most,
                                 .am = p->am,
                                 .bk = p->bk,
                                 .bn = p->bn,
                                 .az = m->xz + (elem_is_signed(m->types[0]) ? 128 : 0),
                                 .bz = (int32_t)quant_zp(m->w, 0) -
                                       (elem_is_signed(m->types[1]) ? 0 : 128),
                                 MAC_RESULT(m)};
    COPY_BATCH(q, p);
    int args[CALL_MAX_ARGS] = {bind_value(b, n->in[A]), bind_value(b, n->in[B])}, count = 2;
    for (int i = 0; i < m->n_out_args; i++)
        args[count++] = m->out_args[i];
    args[count++] = bind_value(b, n->out[0]);
    int scratch = args[count++] = bind_scratch(b, ELEM_UINT8, room.most);
    if (!bind_rounded(b, n, m->rounding, bind_kernel(b, "matmul_pair_q", 3, m->types), &q, sizeof q,
                      count, args))
        return false;
    bind_grow(b, scratch, offsetof(qk_matmul_pair_q_params, room), room.least,
              room.most - room.least, room.most);
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
    if (!mac_prepare(b, n->in[A], n->in[B], n->out[0], axis, (size_t)p->n, p->k, alpha, &m))
        return bind_in_double_as(b, n, m.why);
    if (!mac_bias(b, &m, bias, rows ? p->m : 1, beta, &add))
        return bind_in_double_as(b, n, m.why);
    if (pairs(b, p, &m, n->in[B], bias))
        return product_pair(b, n, p, &m);
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
    Beside o = {.bias = add, .real = m.real, .factor = beta, .zeros = -1};
    int w = m.wbits                               ? packed_small(b, &m, n->in[B], axis)
            : no_wz && elem_is_signed(m.types[1]) ? bind_value(b, n->in[B])
                                                  : packed_signed(b, &m, n->in[B], axis, &o.zeros);
    if (packs(b, p, &m, w, &o, rows))
        return product_packed(b, n, p, &m, w, &o);
    int y = mac_output(b, n, &m), x = mac_input(b, n, &m);
    int weights = m.wbits ? bind_packed(b, n->in[B]) : bind_value(b, n->in[B]);
    int scratch = bind_scratch(b, ELEM_UINT8, (size_t)q.room);
    return mac_call(b, n, &m, "matmul_q", &q, sizeof q, (MacBuffers){x, weights, add, wz, y}, 1,
                    &scratch) &&
           more_widened(b, wide, scratch) && mac_finish(b, n, &m, beta, y);
}

bool bind_product(Binder *b, const Node *n, const Product *p, const Value *bias, int axis,
                  float alpha, float beta) {
    bind_macs(b, (int64_t)bind_count(n->out[0]) * p->k);
    if (bind_any_quant(n) && mac_fits(n->in[A], n->in[B]))
        return product_quant(b, n, p, bias, axis, alpha, beta);
    if (elem_is_int(n->in[A]->type.elem) && !bind_any_quant(n))
        return product_plain(b, n, p, bias, alpha, beta);
    return product_float(b, n, p, bias, alpha, beta);
}
