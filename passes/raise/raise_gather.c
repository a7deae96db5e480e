/* com.microsoft::GatherBlockQuantized apart: DequantizeLinear of a table with a quantized type in
 * blocks, and Gather. Bytes of fewer bits than 8 hold several numbers, the first in the lowest
 * bits. */
#include <math.h>

#include "passes/raise/raise.h"

typedef struct Table {
    int64_t axis, quantize_axis, block, bits; /* bits of a number in bytes, else 0 */
    int64_t dims[MAX_RANK], grid[MAX_RANK];
    const Tensor *data, *scale, *zp; /* zp NULL: the middle of bytes, 0 of others */
} Table;

static const Tensor *constant(const Node *n, size_t i) {
    const Value *v = node_input(n, i);
    const Tensor *t = v ? value_data(v) : NULL;
    return t && t->data ? t : NULL;
}

static bool has_dims(const Tensor *t, const int64_t *dims, int64_t last_in_one) {
    for (int i = 0; i < t->rank; i++) {
        int64_t want = i + 1 < t->rank ? dims[i] : (dims[i] + last_in_one - 1) / last_in_one;
        if (t->dims[i] != want)
            return false;
    }
    return true;
}

static bool read_axis(const Node *n, const char *name, int64_t none, int rank, int64_t *axis) {
    *axis = node_int(n, name, none);
    *axis += *axis < 0 ? rank : 0;
    return *axis >= 0 && *axis < rank;
}

/* NULL, or why the node stays as it is. */
static const char *read(const Node *n, Table *t) {
    *t = (Table){.block = node_int(n, "block_size", 128),
                 .data = constant(n, 0),
                 .scale = constant(n, 2),
                 .zp = constant(n, 3)};
    if (!t->data || !t->scale || t->scale->elem != ELEM_FLOAT || (node_input(n, 3) && !t->zp))
        return "its table, scales (float) or zero points are not constants";
    ElemType e = t->data->elem;
    int rank = t->data->rank;
    int64_t bits = e == ELEM_UINT8 ? node_int(n, "bits", 4) : 0;
    if ((e != ELEM_UINT8 && e != ELEM_INT4 && e != ELEM_UINT4) ||
        (bits && bits != 2 && bits != 4 && bits != 8))
        return "its table is not of 2, 4 or 8 bits";
    t->bits = bits;
    if (rank < 1 || t->block < 1 || t->block > INT32_MAX ||
        !read_axis(n, "gather_axis", 0, rank, &t->axis) ||
        !read_axis(n, "quantize_axis", 1, rank, &t->quantize_axis) || t->scale->rank != rank)
        return "its attributes make no sense";
    int64_t in_one = bits ? 8 / bits : 1;
    for (int i = 0; i < rank; i++) {
        t->dims[i] = t->data->dims[i] * (i + 1 == rank ? in_one : 1);
        t->grid[i] = i == t->quantize_axis ? (t->dims[i] + t->block - 1) / t->block : t->dims[i];
    }
    if (!has_dims(t->scale, t->grid, 1) ||
        (t->zp && (t->zp->elem != e || t->zp->rank != rank || !has_dims(t->zp, t->grid, in_one))))
        return "scales or zero points are not one for each block";
    return NULL;
}

/* Number i of a tensor whose rows (the last axis, `row` numbers) begin with a byte of their own. */
static int64_t number(const Table *t, const Tensor *from, size_t i, size_t row) {
    if (!t->bits || t->bits == 8)
        return tensor_int(from, i);
    size_t in_one = (size_t)(8 / t->bits), at = i / row * ((row + in_one - 1) / in_one);
    int64_t byte = tensor_int(from, at + i % row / in_one);
    return byte >> ((int64_t)(i % row % in_one) * t->bits) & ((1 << t->bits) - 1);
}

static Quant *type_of(Raise *r, const Table *t) {
    ElemType e = t->bits == 2 ? ELEM_UINT2 : t->bits == 4 ? ELEM_UINT4 : t->data->elem;
    size_t count = t->scale->count, row = (size_t)t->grid[t->data->rank - 1];
    Quant *q = quant_per_tensor(r->b.a, e, 1.0F, 0);
    float *scale = NEW_ARRAY(r->b.a, float, count);
    int64_t *zp = NEW_ARRAY(r->b.a, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        double s = tensor_float(t->scale, i);
        scale[i] = (float)fabs(s);
        zp[i] = t->zp ? number(t, t->zp, i, row) : t->bits ? 1 << (t->bits - 1) : 0;
        zp[i] = s < 0 ? turned_around(e, zp[i]) : zp[i];
        if (!(scale[i] >= 0x1p-126F) || !(scale[i] <= 0x1.fffffep127F))
            return NULL;
    }
    q->n_axes = t->data->rank;
    for (int i = 0; i < q->n_axes; i++) {
        q->axis[i] = i;
        q->block[i] = i == t->quantize_axis ? t->block : 1;
    }
    q->n_scale = q->n_zp = count;
    q->scale = scale;
    q->zp = zp;
    return q;
}

/* The block that number i of the table is in. */
static size_t block_of(const Table *t, size_t i) {
    size_t at = 0, stride = 1;
    for (int k = t->data->rank - 1; k >= 0; k--) {
        size_t index = i % (size_t)t->dims[k];
        i /= (size_t)t->dims[k];
        at += (k == t->quantize_axis ? index / (size_t)t->block : index) * stride;
        stride *= (size_t)t->grid[k];
    }
    return at;
}

static Value *table_of(Raise *r, const Node *n, const Table *t, Quant *q) {
    uint8_t *out;
    Tensor *to = tensor_new(r->b.a, q->storage, t->data->rank, t->dims, &out);
    size_t row = (size_t)t->dims[t->data->rank - 1];
    for (size_t i = 0; i < to->count; i++) {
        int64_t v = number(t, t->data, i, row);
        bool below = tensor_float(t->scale, block_of(t, i)) < 0;
        elem_store_int(q->storage, out, i, below ? turned_around(q->storage, v) : v);
    }
    Value *v = build_shared(&r->b, r->m->graph, n->in[0]->name, "_typed",
                            type_quantized(tensor_type(r->b.a, to), q), to);
    if (v->type.quant != q)
        return v;
    value_from(v, n->in[0], r->b.pass);
    q->alias = v->name;
    module_add_quant(r->m, q);
    return v;
}

static void expand(Raise *r, Node *n, const Table *t, Quant *q) {
    Value *ints = table_of(r, n, t, q);
    Node *dq = build_node(&r->b, n, "DequantizeLinear", STR_NONE, OPERANDS(ints));
    Value *real = build_before(&r->b, n, dq, ints->name, "_dequantized", real_type(ints->type));
    Node *gather = build_node(&r->b, n, "Gather", n->name, OPERANDS(real, n->in[1]));
    node_set_int(gather, "axis", t->axis);
    build_in_place(&r->b, n, gather);
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        Table t;
        if (!node_is_in(n, "com.microsoft", "GatherBlockQuantized") || n->n_in < 3 || !n->in[1] ||
            n->n_out != 1 || !n->out[0])
            continue;
        const char *why = read(n, &t);
        Quant *q = why ? NULL : type_of(r, &t);
        if (q)
            expand(r, n, &t, q);
        else
            diag_note(r->b.d, n->loc, "GatherBlockQuantized stays as it is: %s",
                      why ? why : "a scale is not a normal number");
    }
}

void raise_gather(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}
