/* Weights in blocks as com.microsoft::MatMulNBits: MatMul(x, DequantizeLinear(w)), and Gemm with a
 * bias, where w is a constant of 2, 4 or 8 bits with one scale for each block of the summed axis
 * and each column. onnxruntime then never makes the float weights.
 *
 * Its B is [columns, blocks, bytes of a block], elements of the transposed weight, low bits first,
 * unsigned: int4 is stored plus 8, with the zero point 8 that it has by default. Rows that are
 * looked up in the same constant are looked up in B then (lower_tied.c). */
#include "ir/later.h"
#include "passes/edit.h"
#include "passes/lower/lower_tied.h"
#include "support/parallel.h"

typedef struct Weight {
    const Tensor *data;
    const uint8_t *elements; /* of data, while they are packed */
    const Quant *q;
    int64_t k, n, block, blocks;
    bool transposed; /* stored as [n, k] */
} Weight;

typedef struct NBits {
    QuantBuild b;
    PassContext *c;
    Uses *uses;
    Packed *packed;
    size_t n, cap;
    Node **left; /* DequantizeLinear that may be of no use any more */
    size_t n_left, cap_left;
} NBits;

/* NULL when w and the node have the form that MatMulNBits takes. */
static const char *read_weight(const Node *n, Weight *w) {
    const Value *v = n->in[1]->def->in[0];
    w->data = v->data;
    w->q = v->type.quant;
    w->transposed = node_int(n, "transB", 0);
    if (node_int(n, "transA", 0) || node_float(n, "alpha", 1.0F) != 1.0F ||
        node_float(n, "beta", 1.0F) != 1.0F)
        return "MatMulNBits has no transA, alpha and beta";
    int bits = elem_bits(w->q->storage);
    if ((bits != 2 && bits != 4 && bits != 8) || w->q->expressed != ELEM_FLOAT ||
        n->in[1]->type.elem != ELEM_FLOAT)
        return "MatMulNBits has 2, 4 or 8 bits";
    if (w->data->rank != 2 || w->q->n_axes != 2)
        return "MatMulNBits wants weights in blocks: -weights=\"... block(32)\"";
    int summed = w->transposed ? 1 : 0;
    w->block = w->q->block[summed];
    if (w->q->block[!summed] != 1 || !is_nbits_block(w->block))
        return "MatMulNBits has blocks of 16, 32, 64, ... along the summed axis";
    w->k = w->data->dims[summed];
    w->n = w->data->dims[!summed];
    w->blocks = (w->k + w->block - 1) / w->block;
    return w->k && w->n ? NULL : "its weights are empty";
}

/* Which parameter belongs to block `i` of column `j`: they are row-major in the stored layout. */
static size_t param(const Weight *w, int64_t j, int64_t i) {
    return (size_t)(w->transposed ? j * w->blocks + i : i * w->n + j);
}

static int64_t offset(const Weight *w) {
    return elem_is_signed(w->q->storage) ? (int64_t)1 << (elem_bits(w->q->storage) - 1) : 0;
}

/* The low bits of v as element i. */
static void put_bits(uint8_t *row, int64_t i, int bits, int64_t v) {
    row[i * bits / 8] |= (uint8_t)(((uint64_t)v & ((1U << bits) - 1)) << (i * bits % 8));
}

/* [n, columns] bytes, `stride` apart, as columns that are `row` apart. Few at a time: lines of the
 * processor's cache hold 64 of a row. */
static void turn(const uint8_t *x, size_t stride, size_t n, size_t columns, uint8_t *out,
                 size_t row) {
    enum { LINE = 64 };
    for (size_t first = 0; first < columns; first += LINE)
        for (size_t c = first; c < columns && c < first + LINE; c++)
            for (size_t i = 0; i < n; i++)
                out[c * row + i] = x[i * stride + c];
}

/* Weights that are stored as [k, n], each column in `row` bytes. */
typedef struct Packing {
    const Weight *w;
    size_t row;
    uint8_t *out;
    uint8_t *stored[PARALLEL_MOST], *joined[PARALLEL_MOST]; /* by worker */
} Packing;

enum { BYTES = 64 }; /* of a column at once, a line of the processor's cache */

/* Rows of bytes in `joined`: they fall into different sets of the cache. */
static size_t joined_stride(const Weight *w) {
    return (size_t)w->n + 64;
}

/* Parts of BYTES bytes of each column: as many rows as elements fit into a byte are joined, then
 * the rows of bytes turned. */
static void pack_parts(void *ctx, size_t from, size_t to, int worker) {
    const Packing *p = ctx;
    const Weight *w = p->w;
    int bits = elem_bits(w->q->storage);
    size_t per = (size_t)(8 / bits), n = (size_t)w->n, stride = joined_stride(w);
    uint8_t *stored = p->stored[worker], *joined = p->joined[worker];
    for (size_t part = from; part < to; part++) {
        size_t first = part * BYTES * per, left = (size_t)w->k - first;
        size_t rows = left < BYTES * per ? left : BYTES * per;
        for (size_t i = 0; i < rows; i++) {
            elem_load_bytes(w->q->storage, w->elements, (first + i) * n, stored, n);
            row_join(stored, n, (uint8_t)offset(w), bits, (int)(i % per) * bits,
                     joined + i / per * stride);
        }
        turn(joined, stride, (rows + per - 1) / per, n, p->out + part * BYTES, p->row);
    }
}

static void pack_columns(const Weight *w, size_t row, Arena *scratch, uint8_t *out) {
    Packing p = {.w = w, .row = row, .out = out};
    size_t rows = BYTES * (size_t)(8 / elem_bits(w->q->storage));
    size_t parts = ((size_t)w->k + rows - 1) / rows;
    size_t share = 1 + PARALLEL_PART / (rows * (size_t)w->n);
    for (int i = 0; i < parallel_workers(parts, share); i++) {
        p.stored[i] = NEW_ARRAY(scratch, uint8_t, w->n);
        p.joined[i] = NEW_ARRAY(scratch, uint8_t, BYTES *joined_stride(w));
    }
    parallel_for(parts, share, pack_parts, &p);
}

static void pack_rows(const Weight *w, size_t row, Arena *scratch, uint8_t *out) {
    size_t k = (size_t)w->k;
    int bits = elem_bits(w->q->storage);
    uint8_t *stored = NEW_ARRAY(scratch, uint8_t, k);
    for (size_t j = 0; j < (size_t)w->n; j++) {
        elem_load_bytes(w->q->storage, w->elements, j * k, stored, k);
        for (size_t i = 0; i < k; i++)
            put_bits(out + j * row, (int64_t)i, bits, stored[i] + offset(w));
    }
}

static int64_t bytes_of_block(const Weight *w) {
    return w->block * elem_bits(w->q->storage) / 8;
}

static void make_packed(const Module *m, const void *ctx, uint8_t *out) {
    Weight w = *(const Weight *)ctx;
    Arena *scratch = arena_scratch(m->arena);
    int bits = elem_bits(w.q->storage);
    int64_t row = w.blocks * bytes_of_block(&w);
    w.elements = later_made_in(scratch, m, w.data);
    (w.transposed ? pack_rows : pack_columns)(&w, (size_t)row, scratch, out);
    for (int64_t j = 0; j < w.n; j++)
        for (int64_t i = w.k; i < w.blocks * w.block; i++) /* real 0 */
            put_bits(out + j * row, i, bits, quant_zp(w.q, param(&w, j, i / w.block)) + offset(&w));
    module_release(m, w.data);
    module_release_quant(m, w.q);
    arena_free(scratch);
}

static Value *pack(NBits *x, const Weight *w, Str base) {
    int64_t dims[] = {w->n, w->blocks, bytes_of_block(w)};
    Later how = {make_packed, arena_copy(x->b.a, w, sizeof *w)};
    Tensor *t = later_tensor(x->b.m, ELEM_UINT8, 3, dims, how, x->c->may_wait);
    return graph_add_const(x->b.m->graph, derived_name(&x->b, base, "_packed"),
                           tensor_type(x->b.a, t), t);
}

/* Few columns at a time: lines of the processor's cache hold 16 of a row. */
static Value *scales(NBits *x, const Weight *w, Str base) {
    enum { LINE = 16 };
    uint8_t *bytes;
    Tensor *t = tensor_begin(x->b.a, ELEM_FLOAT, 2, (const int64_t[]){w->n, w->blocks}, &bytes);
    float *s = (float *)(void *)bytes;
    for (int64_t first = 0; first < w->n; first += LINE)
        for (int64_t i = 0; i < w->blocks; i++)
            for (int64_t j = first; j < w->n && j < first + LINE; j++)
                s[j * w->blocks + i] = w->q->scale[param(w, j, i)];
    return graph_add_const(x->b.m->graph, derived_name(&x->b, base, "_scales"),
                           tensor_type(x->b.a, t), tensor_end(x->b.a, t));
}

/* NULL where they are all in the middle, which MatMulNBits assumes. */
static Value *zero_points(NBits *x, const Weight *w, Str base) {
    int bits = elem_bits(w->q->storage);
    int64_t middle = (int64_t)1 << (bits - 1), row = (w->blocks * bits + 7) / 8;
    if (w->q->n_zp <= 1 && quant_zp(w->q, 0) + offset(w) == middle)
        return NULL;
    uint8_t *out;
    Tensor *t = tensor_new(x->b.a, ELEM_UINT8, 2, (const int64_t[]){w->n, row}, &out);
    bool all = true;
    for (int64_t j = 0; j < w->n; j++)
        for (int64_t i = 0; i < w->blocks; i++) {
            int64_t zp = quant_zp(w->q, param(w, j, i)) + offset(w);
            all = all && zp == middle;
            put_bits(out + j * row, i, bits, zp);
        }
    return all ? NULL
               : graph_add_const(x->b.m->graph, derived_name(&x->b, base, "_zero_points"),
                                 tensor_type(x->b.a, t), t);
}

/* What was packed for another product, or is now. */
static Packed packed(NBits *x, const Value *of, const Weight *w) {
    for (size_t i = 0; i < x->n; i++)
        if (x->packed[i].of == of && x->packed[i].transposed == w->transposed)
            return x->packed[i];
    Str base = base_name(of->name);
    Packed p = {.of = of,
                .b = pack(x, w, base),
                .scales = scales(x, w, base),
                .zero_points = zero_points(x, w, base),
                .k = w->k,
                .n = w->n,
                .block = w->block,
                .bits = elem_bits(w->q->storage),
                .transposed = w->transposed};
    ARENA_PUSH(x->b.a, x->packed, x->n, x->cap, p);
    return p;
}

static void rewrite(NBits *x, Node *n, const Weight *w) {
    Packed p = packed(x, n->in[1]->def->in[0], w);
    Value *bias = node_input(n, 2);
    n->in[1] = p.b;
    n->n_in = 2;
    set_operand(n, 2, p.scales);
    if (p.zero_points)
        set_operand(n, 3, p.zero_points);
    module_release_quant(x->b.m, w->q);
    if (bias)
        set_operand(n, 5, bias);
    node_becomes(n, x->b.pass);
    n->domain = STR("com.microsoft");
    n->op = STR("MatMulNBits");
    n->n_attrs = 0;
    node_set_int(n, "K", w->k);
    node_set_int(n, "N", w->n);
    node_set_int(n, "bits", elem_bits(w->q->storage));
    node_set_int(n, "block_size", w->block);
    module_import_microsoft(x->b.m);
    op_resolve(n, x->b.d);
}

static bool is_product(const Node *n) {
    return (node_is(n, "MatMul") || node_is(n, "Gemm")) && n->n_in > 1 && n->in[0] && n->in[1];
}

static bool bias_fits(const Node *n, const Weight *w) {
    const Value *b = node_input(n, 2);
    return !b || (b->type.kind == TYPE_TENSOR && b->type.rank == 1 &&
                  b->type.dims[0].value == w->n && b->type.elem == ELEM_FLOAT);
}

static void lower_graph(Graph *g, void *ctx) {
    NBits *x = ctx;
    FOR_NODES(n, g) {
        Node *dq = is_product(n) && n->in[1]->def && is_own_dequantize(n->in[1]->def)
                       ? n->in[1]->def
                       : NULL;
        Weight w;
        if (!dq || !value_is_const(dq->in[0]) || type_is_quantized(n->in[0]->type) ||
            dq->in[0]->type.quant->kind != QUANT_PARAMS)
            continue;
        const char *why = read_weight(n, &w);
        if (!why && !bias_fits(n, &w))
            why = "MatMulNBits takes a bias of one number a column";
        if (why) {
            pass_remark(x->c, n, "%s", why);
            continue;
        }
        node_absorb(n, dq, x->b.pass);
        rewrite(x, n, &w);
        ARENA_PUSH(x->b.a, x->left, x->n_left, x->cap_left, dq);
    }
}

static void lower_tables(Graph *g, void *ctx) {
    NBits *x = ctx;
    FOR_NODES(n, g) {
        Node *dq = node_is(n, "Gather") && n->n_in == 2 && n->in[0] ? n->in[0]->def : NULL;
        for (size_t i = 0; dq && is_own_dequantize(dq) && i < x->n; i++) {
            if (x->packed[i].of != dq->in[0])
                continue;
            const char *why = lower_tied(&x->b, x->uses, n, &x->packed[i]);
            if (why)
                pass_remark(x->c, n, "%s", why);
            ARENA_PUSH(x->b.a, x->left, x->n_left, x->cap_left, dq);
            break;
        }
    }
}

bool pass_lower_nbits(Module *m, PassContext *c) {
    NBits x = {.b = quant_build_new(m, c, "lower-nbits"), .c = c};
    if (!target_has_microsoft(c->target))
        return true;
    module_each_graph(m, lower_graph, &x);
    x.uses = uses_new(m);
    module_each_graph(m, lower_tables, &x);
    edit_drop_unread(m, x.left, x.n_left);
    edit_sweep(m);
    return true;
}
