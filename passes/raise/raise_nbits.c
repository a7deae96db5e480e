/* com.microsoft::MatMulNBits apart: DequantizeLinear of weights with a quantized type, MatMul, and
 * Add where there was a bias. See lower_nbits.c for the layout. */
#include <math.h>

#include "passes/raise/raise.h"

typedef struct Packed {
    int64_t k, n, bits, block, blocks;
    const Tensor *data, *scale, *zp; /* zp NULL: all in the middle */
    bool below;                      /* some scale is below 0, as onnxruntime's quantizer has it */
} Packed;

static const Tensor *constant(const Node *n, size_t i, ElemType e, size_t count) {
    const Tensor *t = node_input(n, i) ? value_data(n->in[i]) : NULL;
    return t && t->data && t->elem == e && t->count == count ? t : NULL;
}

/* g_idx that says what holds without it. */
static bool is_in_order(const Value *v, int64_t block) {
    const Tensor *t = value_data(v);
    for (size_t i = 0; t && t->data && i < t->count; i++)
        if (tensor_int(t, i) != (int64_t)i / block)
            return false;
    return t && t->data;
}

static bool are_integers(const Tensor *zp, int64_t bits) {
    for (size_t i = 0; i < zp->count; i++) {
        double v = tensor_float(zp, i);
        if (!(v >= 0) || v > (1 << bits) - 1 || v != floor(v))
            return false;
    }
    return true;
}

/* NULL, or why the node stays as it is. */
static const char *read(const Node *n, Packed *p) {
    *p = (Packed){.k = node_int(n, "K", 0),
                  .n = node_int(n, "N", 0),
                  .bits = node_int(n, "bits", 4),
                  .block = node_int(n, "block_size", 0)};
    if (p->k < 1 || p->n < 1 || p->block < 16 || p->k > INT32_MAX || p->n > INT32_MAX ||
        p->block > INT32_MAX || (p->bits != 2 && p->bits != 4 && p->bits != 8))
        return "its attributes make no sense";
    if (n->n_in < 3 || !n->in[0] || (node_input(n, 4) && !is_in_order(n->in[4], p->block)))
        return "it reorders its groups (g_idx)";
    p->blocks = (p->k + p->block - 1) / p->block;
    size_t row = (size_t)(p->blocks * p->block * p->bits / 8);
    p->data = constant(n, 1, ELEM_UINT8, (size_t)p->n * row);
    p->scale = constant(n, 2, ELEM_FLOAT, (size_t)(p->n * p->blocks));
    if (!p->data || !p->scale)
        return "its weights or scales are not constants of the expected size";
    for (size_t i = 0; i < p->scale->count; i++)
        p->below |= tensor_float(p->scale, i) < 0;
    if (node_input(n, 3)) {
        p->zp = constant(n, 3, ELEM_UINT8, (size_t)(p->n * ((p->blocks * p->bits + 7) / 8)));
        const Tensor *floats = constant(n, 3, ELEM_FLOAT, (size_t)(p->n * p->blocks));
        if (!p->zp && !floats)
            return "its zero points are not constants of the expected size";
        if (!p->zp && !are_integers(floats, p->bits))
            return "its zero points are no integers of its bits";
        p->zp = p->zp ? p->zp : floats;
    }
    return NULL;
}

static int64_t bits_at(const uint8_t *row, int64_t i, int64_t bits) {
    return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

static ElemType storage(const Packed *p) {
    bool zp = p->zp || p->below;
    return p->bits == 2   ? (zp ? ELEM_UINT2 : ELEM_INT2)
           : p->bits == 4 ? (zp ? ELEM_UINT4 : ELEM_INT4)
                          : (zp ? ELEM_UINT8 : ELEM_INT8);
}

static bool is_below(const Packed *p, int64_t column, int64_t block) {
    return tensor_float(p->scale, (size_t)(column * p->blocks + block)) < 0;
}

static Quant *type_of(Raise *r, const Packed *p) {
    size_t count = (size_t)(p->blocks * p->n);
    float *scale = NEW_ARRAY(r->b.a, float, count);
    int64_t *zp = NEW_ARRAY(r->b.a, int64_t, count), row = (p->blocks * p->bits + 7) / 8;
    for (int64_t i = 0; i < p->blocks; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double s = tensor_float(p->scale, (size_t)(j * p->blocks + i));
            int64_t z = !p->zp ? (p->below ? 1LL << (p->bits - 1) : 0)
                        : p->zp->elem == ELEM_UINT8
                            ? bits_at(p->zp->data + j * row, i, p->bits)
                            : (int64_t)tensor_float(p->zp, (size_t)(j * p->blocks + i));
            scale[i * p->n + j] = (float)fabs(s);
            zp[i * p->n + j] = s < 0 ? turned_around(storage(p), z) : z;
        }
    Quant *q = quant_per_tensor(r->b.a, storage(p), 1.0F, 0);
    q->n_axes = 2;
    q->axis[1] = 1;
    q->block[0] = p->block;
    q->block[1] = 1;
    q->n_scale = count;
    q->scale = scale;
    q->n_zp = p->zp || p->below ? count : 1;
    q->zp = zp;
    return q;
}

static bool is_type(const Quant *q) {
    for (size_t i = 0; i < q->n_scale; i++)
        if (!(q->scale[i] >= 0x1p-126F) || !(q->scale[i] <= 0x1.fffffep127F))
            return false;
    return true;
}

static Value *unpacked(Raise *r, const Node *n, const Packed *p, Quant *q) {
    uint8_t *out;
    Tensor *t = tensor_new(r->b.a, q->storage, 2, (const int64_t[]){p->k, p->n}, &out);
    int64_t row = p->blocks * p->block * p->bits / 8,
            less = p->zp || p->below ? 0 : 1LL << (p->bits - 1);
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->k; i++) {
            int64_t v = bits_at(p->data->data + j * row, i, p->bits) - less;
            v = is_below(p, j, i / p->block) ? turned_around(q->storage, v) : v;
            elem_store_int(q->storage, out, (size_t)(i * p->n + j), v);
        }
    Str name = n->in[1]->name, packed = STR("_packed");
    if (name.n > packed.n && str_ends(name, "_packed"))
        name.n -= packed.n;
    Value *w =
        build_shared(&r->b, r->m->graph, name, "", type_quantized(tensor_type(r->b.a, t), q), t);
    if (w->type.quant != q)
        return w;
    value_from(w, n->in[1], r->b.pass);
    q->alias = w->name;
    module_add_quant(r->m, q);
    return w;
}

static void expand(Raise *r, Node *n, const Packed *p, Quant *q) {
    Value *w = unpacked(r, n, p, q), *y = n->out[0];
    Node *dq = build_node(&r->b, n, "DequantizeLinear", STR_NONE, OPERANDS(w));
    Value *real = build_before(&r->b, n, dq, w->name, "_dequantized", real_type(w->type));
    Node *f = build_node(&r->b, n, "MatMul", STR_NONE, OPERANDS(n->in[0], real));
    f->name = n->name;
    if (node_input(n, 5)) {
        Value *product = build_before(&r->b, n, f, y->name, "_MatMul", y->type);
        f = build_node(&r->b, n, "Add", STR_NONE, OPERANDS(product, n->in[5]));
    }
    build_in_place(&r->b, n, f);
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        Packed p;
        if (!node_is_in(n, "com.microsoft", "MatMulNBits"))
            continue;
        const char *why = read(n, &p);
        Quant *q = why ? NULL : type_of(r, &p);
        if (q && !is_type(q))
            why = "a scale is not a normal number";
        if (why)
            diag_note(r->b.d, n->loc, "MatMulNBits stays as it is: %s", why);
        else
            expand(r, n, &p, q);
    }
}

void raise_nbits(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}
