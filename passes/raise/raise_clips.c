/* Integers narrower than their storage, as ONNX's users write them: QuantizeLinear, Clip of the
 * integers, DequantizeLinear (QCDQ; Brevitas for 2 to 7 bits), or Clip and DequantizeLinear behind
 * constants. The Clip becomes the range of the type, `int8q<0.1, 0, range=-8:7>` (0 and 1: that of
 * one bit, `uint1q<0.1>`), and saturating
 * once is the same as saturating twice. NaN alone tells them apart, of which ONNX does not say what
 * integer it becomes: here the lowest one of the storage type. */
#include "passes/raise/raise.h"

typedef struct Narrow { /* a Clip between Q, or a constant, and DQ */
    Node *clip, *q;     /* q is NULL behind a constant */
    const Use *uses;    /* each a DequantizeLinear of the Clip's result */
    size_t n_uses;
    int64_t lo, hi;
} Narrow;

/* The integer that operand i of a Clip bounds with. */
static bool bound(const Node *n, size_t i, int64_t none, int64_t *out) {
    const Value *v = node_input(n, i);
    const Tensor *t = v ? value_data(v) : NULL;
    *out = v && t && t->data && t->count == 1 ? tensor_int(t, 0) : none;
    return !v || (t && t->data && t->count == 1);
}

static bool find_source(const Raise *r, Narrow *k) {
    const Value *x = k->clip->in[0];
    if (value_data(x))
        return true;
    k->q = x->def;
    return k->q && is_onnx_quantize(k->q) && k->q->graph == k->clip->graph &&
           uses_only_node(r->uses, x);
}

static bool find(const Raise *r, Node *n, Narrow *k) {
    *k = (Narrow){.clip = n};
    if (!node_is(n, "Clip") || !n->in[0])
        return false;
    Type t = n->in[0]->type;
    if (t.kind != TYPE_TENSOR || t.quant || !elem_is_int(t.elem) || elem_bits(t.elem) > 32 ||
        !bound(n, 1, elem_min(t.elem), &k->lo) || !bound(n, 2, elem_max(t.elem), &k->hi) ||
        k->lo >= k->hi /* one number is no range */ || !find_source(r, k))
        return false;
    k->n_uses = uses_of(r->uses, n->out[0], &k->uses);
    for (size_t i = 0; i < k->n_uses; i++)
        if (!k->uses[i].node || k->uses[i].index || !is_onnx_dequantize(k->uses[i].node))
            return false;
    return k->n_uses > 0;
}

void raise_one_bit(Quant *q) {
    if (!q->has_range || q->lo != 0 || q->hi != 1 || elem_bits(q->storage) != 8)
        return;
    q->storage = elem_is_signed(q->storage) ? ELEM_INT1 : ELEM_UINT1;
    q->has_range = false;
}

/* What all that state parameters agree on, with the Clip's range; NULL where it is no type. */
static Quant *agreed(Raise *r, const Narrow *k) {
    const char *why;
    const Quant *q = k->q ? raise_params(r, k->q, &why) : NULL;
    if (k->q && !q)
        return NULL;
    for (size_t i = 0; i < k->n_uses; i++) {
        const Quant *dq = raise_params(r, k->uses[i].node, &why);
        if (!dq || (q && !quant_equal(q, dq)))
            return NULL;
        q = dq;
    }
    for (size_t i = 0; i < q->n_zp; i++)
        if (q->zp[i] < k->lo || q->zp[i] > k->hi)
            return NULL; /* 0 would not be in the range */
    Quant *out = quant_copy(r->b.a, q);
    out->has_range = k->lo > elem_min(q->storage) || k->hi < elem_max(q->storage);
    out->lo = k->lo;
    out->hi = k->hi;
    raise_one_bit(out);
    return out;
}

/* The constant within the bounds, where mostly it is already, in the type's storage. */
static Value *clipped(Raise *r, const Narrow *k, const Quant *q) {
    Value *v = k->clip->in[0];
    const Tensor *t = value_data(v);
    bool inside = true;
    uint8_t *bytes;
    Tensor *out = tensor_new(r->b.a, q->storage, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++) {
        int64_t x = tensor_int(t, i), y = x < k->lo ? k->lo : x > k->hi ? k->hi : x;
        elem_store_int(q->storage, bytes, i, y);
        inside &= x == y;
    }
    if (inside && q->storage == t->elem)
        return raise_const(r, v, q);
    Value *c = graph_add_const(v->kind == VALUE_CONST ? v->graph : r->m->graph,
                               derived_name(&r->b, v->name, "_typed"),
                               type_quantized(tensor_type(r->b.a, out), q), out);
    value_from(c, v, r->b.pass);
    raise_note_const(r, v, c);
    return c;
}

/* The Clip's result is what it and the Q before it are for. Of a Q that was made for a QOperator
 * the float before it is named after its integers, and they after it in the end. */
static void take_name(Raise *r, const Narrow *k, const Value *clipped) {
    Value *real = k->q->in[0];
    k->q->out[0]->name = clipped->name;
    k->q->out[0]->declared = clipped->declared;
    if (!real->def || map_get(r->made, real->name) != real->def)
        return;
    real->name = derived_name(&r->b, base_name(clipped->name), "_QuantizeLinear_Input");
    map_set(r->made, real->name, real->def);
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        Narrow k;
        Quant *q = find(r, n, &k) ? agreed(r, &k) : NULL;
        const Tensor *t = value_data(n->in && n->n_in ? n->in[0] : NULL);
        if (!q || (!k.q && (!t || !t->data)))
            continue;
        Value *ints = k.q ? n->in[0] : clipped(r, &k, q);
        ints->type = type_quantized(ints->type, q);
        if (k.q) {
            take_name(r, &k, n->out[0]);
            drop_params(k.q, r->b.d);
        }
        for (size_t i = 0; i < k.n_uses; i++) {
            k.uses[i].node->in[0] = ints;
            drop_params(k.uses[i].node, r->b.d);
        }
        node_remove(n);
    }
}

void raise_clips(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}
