/* com.microsoft MatMulNBits: a product with weights of 2, 4 or 8 bits, stored transposed and packed
 * in blocks of the summed axis (passes/lower/lower_nbits.c has the layout). Most become quantized
 * types before anything runs; those whose zero points are fractions, or whose rows choose their
 * block (g_idx), stay and run here, as floats that are made of the weights once:
 *
 *   w[k, n] = (q[k, n] - zero point[n, g(k)]) * scale[n, g(k)],  g(k) = g_idx[k] or k / block_size
 */
#include "ir/ops/bind.h"

enum { A, B, SCALES, ZERO_POINTS, G_IDX, BIAS };

typedef struct NBitsAttrs {
    int64_t k, n, bits, block_size, accuracy_level, weight_prepacked;
} NBitsAttrs;

static const AttrSpec attrs[] = {
    ATTR(NBitsAttrs, k, "K", ATTR_INT, .required = true),
    ATTR(NBitsAttrs, n, "N", ATTR_INT, .required = true),
    A_INT(NBitsAttrs, bits, 4),
    A_INT_REQUIRED(NBitsAttrs, block_size),
    A_INT(NBitsAttrs, accuracy_level, 0),
    A_INT(NBitsAttrs, weight_prepacked, 0),
    A_END,
};

static int64_t blocks_of(const NBitsAttrs *a) {
    return (a->k + a->block_size - 1) / a->block_size;
}

static bool verify(const OpCtx *c) {
    const NBitsAttrs *a = c->attrs;
    Type x = op_type(c, A);
    if (a->k < 1 || a->n < 1 || a->k > INT32_MAX || a->n > INT32_MAX)
        return op_error(c, "K and N must be 1 to 2^31 - 1");
    if (a->block_size < 16 || a->block_size > INT32_MAX || (a->block_size & (a->block_size - 1)))
        return op_error_attr(c, "block_size",
                             "block_size must be a power of 2 of at least 16, not %lld",
                             (long long)a->block_size);
    if (a->bits != 2 && a->bits != 4 && a->bits != 8)
        return op_error_attr(c, "bits", "bits must be 2, 4 or 8, not %lld", (long long)a->bits);
    if (x.rank == 0 ||
        (x.rank > 0 && x.dims[x.rank - 1].value >= 0 && x.dims[x.rank - 1].value != a->k))
        return op_error_in(c, A, "operand 0 is %s, must have rows of %lld", type_text(c->arena, x),
                           (long long)a->k);
    return true;
}

static bool infer(OpCtx *c) {
    const NBitsAttrs *a = c->attrs;
    Type x = op_type(c, A);
    if (x.rank < 1)
        return true;
    Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
    dims[x.rank - 1] = dim_of(a->n);
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

/* ---- binding ---- */

typedef struct Packed {
    const NBitsAttrs *a;
    const Tensor *data, *scale, *zp, *groups; /* zp, groups: or NULL */
    int64_t blocks;
} Packed;

static const Tensor *constant(const OpCtx *c, size_t i, size_t count) {
    const Value *v = op_in(c, i);
    const Tensor *t = v ? value_data(v) : NULL;
    return t && t->data && t->count == count ? t : NULL;
}

static int64_t bits_at(const uint8_t *row, int64_t i, int64_t bits) {
    return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

static bool read_packed(const OpCtx *c, Packed *p) {
    const NBitsAttrs *a = c->attrs;
    const Value *zp = op_in(c, ZERO_POINTS);
    size_t n = (size_t)a->n;
    *p = (Packed){.a = a, .blocks = blocks_of(a)};
    size_t count = n * (size_t)p->blocks, row = (size_t)(p->blocks * a->block_size * a->bits / 8);
    bool bytes = zp && zp->type.elem == ELEM_UINT8;
    size_t zps = bytes ? n * (size_t)((p->blocks * a->bits + 7) / 8) : count;
    p->data = constant(c, B, n * row);
    p->scale = constant(c, SCALES, count);
    p->zp = constant(c, ZERO_POINTS, zps);
    p->groups = constant(c, G_IDX, (size_t)a->k);
    if (!p->groups) /* or for whole blocks */
        p->groups = constant(c, G_IDX, (size_t)(p->blocks * a->block_size));
    for (size_t i = 0; p->groups && i < p->groups->count; i++)
        if (tensor_int(p->groups, i) < 0 || tensor_int(p->groups, i) >= p->blocks)
            return false;
    return p->data && p->data->elem == ELEM_UINT8 && p->scale && (p->zp || !zp) &&
           (p->groups || !op_in(c, G_IDX));
}

static float zero_point(const Packed *p, int64_t j, int64_t g) {
    if (!p->zp)
        return (float)(1 << (p->a->bits - 1));
    if (p->zp->elem != ELEM_UINT8)
        return (float)tensor_float(p->zp, (size_t)(j * p->blocks + g));
    int64_t row = (p->blocks * p->a->bits + 7) / 8;
    return (float)bits_at(p->zp->data + j * row, g, p->a->bits);
}

/* [N, K], as they are packed. */
static float *unpacked(Arena *arena, const Packed *p) {
    const NBitsAttrs *a = p->a;
    int64_t row = p->blocks * a->block_size * a->bits / 8;
    float *w = NEW_ARRAY(arena, float, (size_t)(a->n * a->k));
    for (int64_t j = 0; j < a->n; j++)
        for (int64_t i = 0; i < a->k; i++) {
            int64_t g = p->groups ? tensor_int(p->groups, (size_t)i) : i / a->block_size;
            float scale = (float)tensor_float(p->scale, (size_t)(j * p->blocks + g));
            int64_t q = bits_at(p->data->data + j * row, i, a->bits);
            w[j * a->k + i] = ((float)q - zero_point(p, j, g)) * scale;
        }
    return w;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const NBitsAttrs *a = c->attrs;
    Type x = n->in[A]->type;
    const Value *bias = op_in(c, BIAS);
    Packed p;
    if (x.elem != ELEM_FLOAT || op_quant(n->in[A]) || (bias && bias->type.elem != ELEM_FLOAT))
        return bind_unsupported(b, n, "only float has a kernel");
    if (a->weight_prepacked || !read_packed(c, &p) || (bias && bind_count(bias) != a->n))
        return bind_unsupported(
            b, n,
            "its weights, scales, zero points, groups and bias are not constants of the "
            "size that its attributes say");
    int32_t k = (int32_t)a->k;
    qk_matmul_f32_params m = {.m = bind_extent(x, 0, x.rank - 1),
                              .n = (int32_t)a->n,
                              .k = k,
                              .am = k,
                              .ak = 1,
                              .bk = 1,
                              .bn = k,
                              .has_c = bias != NULL,
                              .cn = 1,
                              .alpha = 1,
                              .beta = 1};
    bind_macs(b, dim_mul(bind_count(n->out[0]), a->k));
    int w = bind_const(b, ELEM_FLOAT, (size_t)(a->n * a->k), unpacked(binder_arena(b), &p),
                       "weights by column");
    int args[] = {bind_value(b, n->in[A]), w, bind_value(b, bias), bind_value(b, n->out[0])};
    return bind_matmul(b, n, &m, args);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)result;
    return i == A && axis < op_type(c, A).rank - 1 ? axis : -1;
}

const OpDef op_MatMulNBits = {
    .domain = "com.microsoft",
    .name = "MatMulNBits",
    .attrs_size = sizeof(NBitsAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
