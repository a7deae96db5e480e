/* Products of matrices of floats: what all operators with one share. */
#include "ir/ops/bind.h"
#include "ir/ops/conv_float.h"

enum { BLOCK = 16, FEW_ROWS = 3 };

/* How many matrices b has, one behind the other, and the elements of one in blocks of columns. */
typedef struct Blocks {
    int64_t matrices, each;
} Blocks;

/* Whether the matrices of b lie whole, one behind the other: those of FusedMatMul with transBatchB
 * do not. */
static bool lie_apart(const qk_matmul_f32_params *p) {
    int32_t plain = p->k * p->n;
    bool whole = (p->bn == 1 && p->bk == p->n) || (p->bk == 1 && p->bn == p->k);
    for (int i = 0; i < p->rank; i++)
        whole = whole && p->bs[i] % plain == 0;
    return whole;
}

/* Whether a copy of constant b in blocks is worth its flash: not where it is much larger. */
static bool blocks_of(Binder *b, const qk_matmul_f32_params *p, int from, Blocks *k) {
    const Buffer *w = bind_buffer(b, from);
    int64_t plain = (int64_t)p->k * p->n, columns = ((int64_t)p->n + BLOCK - 1) / BLOCK * BLOCK;
    if (w->kind != BUF_CONST || !w->data || plain <= 0 || plain > INT32_MAX ||
        (int64_t)w->count % plain || !lie_apart(p))
        return false;
    *k = (Blocks){.matrices = (int64_t)w->count / plain, .each = columns * p->k};
    return k->each <= plain + plain / 2 + 1024 && k->matrices * k->each <= INT32_MAX;
}

/* [matrices][columns / 16][k][16], filled up with zeros; the strides of the batch follow. */
static int bind_blocks(Binder *b, qk_matmul_f32_params *p, int from, Blocks blocks) {
    Buffer w = *bind_buffer(b, from);
    size_t size = (size_t)elem_bits(w.elem) / 8, count = (size_t)(blocks.matrices * blocks.each);
    char *out = arena_alloc(binder_arena(b), count * size);
    int64_t plain = (int64_t)p->k * p->n;
    memset(out, 0, count * size);
    for (int64_t i = 0; i < blocks.matrices; i++)
        for (int64_t j = 0; j < p->n; j++)
            for (int64_t k = 0; k < p->k; k++)
                memcpy(out +
                           (size_t)(i * blocks.each + (j / BLOCK * p->k + k) * BLOCK + j % BLOCK) *
                               size,
                       (const char *)w.data + (size_t)(i * plain + k * p->bk + j * p->bn) * size,
                       size);
    for (int i = 0; i < p->rank; i++)
        p->bs[i] = (int32_t)(p->bs[i] / plain * blocks.each);
    p->blocks = 1;
    return bind_made(b, w.elem, count, out, "weights, in blocks of columns");
}

static bool has_few_rows(const Binder *b, const qk_matmul_f32_params *p) {
    return p->m <= FEW_ROWS && !bind_any_length(b);
}

/* Rows that lie one behind the other times a constant matrix, plus a constant row. */
static bool is_layer(Binder *b, const qk_matmul_f32_params *p, const int args[4]) {
    bool row = p->n == 1 || p->cn == 1;
    return bind_real(b) == ELEM_FLOAT && p->rank == 0 && p->ak == 1 && p->am == p->k &&
           p->alpha == 1 &&
           (!p->has_c ||
            (p->beta == 1 && p->cm == 0 && row && bind_buffer(b, args[2])->kind == BUF_CONST &&
             bind_buffer(b, args[2])->count == (size_t)p->n));
}

/* As a Conv of 1 by 1 with channels last, whose kernel is the faster one. */
static bool bind_layer(Binder *b, const Node *n, qk_matmul_f32_params p, const int args[4],
                       Blocks blocks) {
    size_t columns = ((size_t)p.n + BLOCK - 1) / BLOCK * BLOCK;
    float *bias = NEW_ARRAY(binder_arena(b), float, columns);
    qk_conv2d_nhwc_f32_params c = {.n = 1,
                                   .ic = p.k,
                                   .ih = p.m,
                                   .iw = 1,
                                   .oc = p.n,
                                   .oh = p.m,
                                   .ow = 1,
                                   .kh = 1,
                                   .kw = 1,
                                   .sh = 1,
                                   .sw = 1,
                                   .dh = 1,
                                   .dw = 1,
                                   .group = 1};
    conv_float_chains(p.k, 1, &c.part, &c.chain);
    if (p.has_c)
        memcpy(bias, bind_buffer(b, args[2])->data, sizeof *bias * (size_t)p.n);
    int w = bind_blocks(b, &p, args[1], blocks);
    return bind_call(
        b, n, "qk_conv2d_nhwc_f32", &c, sizeof c, 5,
        (int[]){args[0], w, bind_const(b, ELEM_FLOAT, columns, bias, "bias"), args[3], -1});
}

bool bind_matmul(Binder *b, const Node *n, const qk_matmul_f32_params *params, const int args[4]) {
    qk_matmul_f32_params p = *params;
    int w = args[1];
    bool as_they_are = has_few_rows(b, &p) && (p.bn == 1 || (p.ak == 1 && p.bk == 1));
    size_t row = (size_t)p.k * (size_t)elem_bits(bind_real(b)) / 8;
    size_t columns = as_they_are ? 0 : BLOCK * row, rows = p.ak == 1 ? 0 : 4 * row;
    Blocks blocks;
    if (is_layer(b, &p, args) && blocks_of(b, &p, w, &blocks))
        return bind_layer(b, n, p, args, blocks);
    if ((bind_any_length(b) || columns > bind_room(b, n)) && blocks_of(b, &p, w, &blocks)) {
        w = bind_blocks(b, &p, w, blocks);
        columns = 0;
    }
    size_t room = columns + rows <= INT32_MAX ? columns + rows : 0;
    p.room = (int32_t)room;
    int scratch = bind_scratch(b, ELEM_FLOAT, room / ((size_t)elem_bits(bind_real(b)) / 8));
    if (!bind_call(b, n, "qk_matmul_f32", &p, sizeof p, 5,
                   (int[]){args[0], w, args[2], args[3], scratch}))
        return false;
    if (room)
        bind_grow(b, scratch, offsetof(qk_matmul_f32_params, room), 0, room, room);
    return true;
}
