/* Conversions that lowering spelled out, because ONNX's QuantizeLinear or DequantizeLinear cannot
 * state them (emulate.h) are conversions again, with the parameters that their constants hold. Only
 * the exact chains count, in the types that make them equal to what a quantized type means; zero
 * points outside the storage need -wide-zp, as in the text. */
#include <math.h>
#include <stdlib.h>

#include "passes/emulate.h"
#include "passes/raise/raise.h"

enum { MAX_STEPS = 8 };

struct Emulated {
    Node *node; /* the last of the chain, a Q or DQ for now */
    Node was;
    Node *steps[MAX_STEPS]; /* those before it, last first, which stand in no graph for now */
    size_t n_steps;
    const Quant *q;
};

typedef struct Chain {
    Value *x, *scale;
    const Value *zp; /* NULL: none */
    ElemType storage, expressed;
    bool ranged;
    int64_t lo, hi;
} Chain;

/* ---- finding one ---- */

static Node *maker(const Value *v, const char *op) {
    Node *n = v ? v->def : NULL;
    return n && node_is(n, op) && n->graph == v->graph && n->n_in && n->in[0] ? n : NULL;
}

static bool has_elem(const Value *v, ElemType e) {
    return v->type.kind == TYPE_TENSOR && !v->type.quant && v->type.elem == e;
}

/* The constant operand of an operator of two, of this type. */
static Value *constant(const Node *n, size_t i, ElemType e) {
    Value *v = n->n_in > i ? n->in[i] : NULL;
    const Tensor *t = v ? value_data(v) : NULL;
    return t && t->data && t->elem == e ? v : NULL;
}

static bool bound(const Node *n, size_t i, int64_t *out) {
    const Value *v = constant(n, i, ELEM_DOUBLE);
    double x = v && value_data(v)->count == 1 ? tensor_float(value_data(v), 0) : (double)NAN;
    if (!(fabs(x) <= 0x1p32) || x != rint(x))
        return false;
    *out = (int64_t)x;
    return true;
}

/* Clip, or Max and Min as before opset 12. */
static Value *clipped(Value *v, Chain *c) {
    Node *clip = maker(v, "Clip"), *min = maker(v, "Min"),
         *max = min ? maker(min->in[0], "Max") : NULL;
    if (clip)
        return bound(clip, 1, &c->lo) && bound(clip, 2, &c->hi) ? clip->in[0] : NULL;
    return max && min->n_in == 2 && max->n_in == 2 && bound(max, 1, &c->lo) && bound(min, 1, &c->hi)
               ? max->in[0]
               : NULL;
}

static bool is_storage(ElemType e) {
    return elem_is_int(e) && elem_bits(e) >= 8 && elem_bits(e) <= 32;
}

static bool find_quantize(const Node *n, Chain *c) {
    *c = (Chain){.storage = node_cast(n)};
    if (!is_storage(c->storage) || !n->in[0] || !has_elem(n->in[0], ELEM_DOUBLE))
        return false;
    Value *v = clipped(n->in[0], c);
    if (!v || c->lo >= c->hi || c->lo < elem_min(c->storage) || c->hi > elem_max(c->storage))
        return false;
    c->ranged = c->lo > elem_min(c->storage) || c->hi < elem_max(c->storage);
    Node *add = maker(v, "Add");
    if (add) {
        c->zp = constant(add, 1, ELEM_DOUBLE);
        v = c->zp ? add->in[0] : NULL;
    }
    Node *cast = maker(v, "Cast"), *round = maker(cast ? cast->in[0] : v, "Round");
    Node *div = round ? maker(round->in[0], "Div") : NULL;
    if (!div)
        return false;
    bool doubles = has_elem(div->in[0], ELEM_DOUBLE);
    c->x = div->in[0];
    c->scale = constant(div, 1, doubles ? ELEM_DOUBLE : ELEM_FLOAT);
    c->expressed = c->x->type.elem;
    Node *widen = doubles && elem_bits(c->storage) == 32 ? maker(c->x, "Cast") : NULL;
    if (widen && has_elem(widen->in[0], ELEM_FLOAT)) {
        c->x = widen->in[0];
        c->expressed = ELEM_FLOAT;
    }
    return c->scale && (doubles || (has_elem(c->x, ELEM_FLOAT) && elem_bits(c->storage) < 32));
}

static bool find_dequantize(const Node *n, Chain *c) {
    bool narrows = node_cast(n) == ELEM_FLOAT;
    const Node *mul = narrows ? maker(n->in[0], "Mul") : node_is(n, "Mul") ? n : NULL;
    Node *cast = mul ? maker(mul->in[0], "Cast") : NULL;
    if (!cast)
        return false;
    ElemType real = node_cast(cast);
    Node *sub = maker(cast->in[0], "Sub"), *widen = maker(sub ? sub->in[0] : cast->in[0], "Cast");
    if (!widen || (real != ELEM_FLOAT && real != ELEM_DOUBLE) ||
        widen->in[0]->type.kind != TYPE_TENSOR || type_is_quantized(widen->in[0]->type))
        return false;
    *c = (Chain){.x = widen->in[0],
                 .scale = constant(mul, 1, real),
                 .storage = widen->in[0]->type.elem,
                 .expressed = narrows ? ELEM_FLOAT : real};
    if (!is_storage(c->storage) || !c->scale)
        return false;
    bool wide = elem_bits(c->storage) == 32;
    ElemType e = wide ? ELEM_INT64 : ELEM_INT32;
    c->zp = sub ? constant(sub, 1, e) : NULL;
    return node_int(widen, "to", 0) == (int)e && (!sub || c->zp) && narrows <= wide &&
           (real == ELEM_DOUBLE) == (narrows || c->expressed == ELEM_DOUBLE) &&
           (!wide || real == ELEM_DOUBLE || !sub);
}

bool is_emulated(const Node *n) {
    Chain c;
    return find_quantize(n, &c) || (find_dequantize(n, &c) && value_data(c.x));
}

/* ---- its type ---- */

static bool zero_point(const Tensor *t, size_t i, int64_t *zp) {
    double x = tensor_float(t, i);
    if (!(fabs(x) <= 0x1p32) || x != rint(x))
        return false;
    *zp = (int64_t)x;
    return true;
}

/* Along which axes of x the parameters vary: those where their own dimension is not 1. */
static bool set_axes(Raise *r, Quant *q, const Tensor *s, Type x) {
    int64_t grid[MAX_RANK];
    q->n_axes = 0;
    if (s->rank == 0)
        return true;
    if (x.rank != s->rank)
        return false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] == 1)
            continue;
        if (x.dims[i].value != s->dims[i])
            return false;
        grid[q->n_axes] = s->dims[i];
        q->axis[q->n_axes] = i;
        q->block[q->n_axes++] = 1;
    }
    raise_merge_blocks(r, q, grid);
    return true;
}

static void set_range(Quant *q, const Chain *c) {
    q->has_range = c->ranged;
    q->lo = c->ranged ? c->lo : elem_min(q->storage);
    q->hi = c->ranged ? c->hi : elem_max(q->storage);
}

static const Quant *type_of(Raise *r, const Chain *c) {
    const Tensor *s = value_data(c->scale), *z = c->zp ? value_data(c->zp) : NULL;
    if (s->rank > MAX_RANK || s->count == 0 || (z && z->count != 1 && !tensor_same_shape(s, z)))
        return NULL;
    float *scale = NEW_ARRAY(r->b.a, float, s->count);
    int64_t *zp = NEW_ARRAY(r->b.a, int64_t, s->count);
    for (size_t i = 0; i < s->count; i++) {
        scale[i] = (float)tensor_float(s, i);
        if (!isnormal(scale[i]) || scale[i] < 0 || (double)scale[i] != tensor_float(s, i) ||
            (z && !zero_point(z, z->count == 1 ? 0 : i, &zp[i])))
            return NULL;
    }
    Quant *q = quant_per_axis(r->b.a, c->storage, 0, s->count, scale, zp);
    if (!set_axes(r, q, s, c->x->type))
        return NULL;
    if (quant_zp_all_zero(q))
        q->n_zp = 1;
    q->expressed = c->expressed;
    set_range(q, c);
    q->wide_zp = r->m->wide_zp;
    bool far = quant_is_wide(q);
    for (size_t i = 0; i < q->n_zp && far; i++)
        if (!r->m->wide_zp || elem_bits(q->storage) > 16 || llabs(q->zp[i]) > QUANT_WIDEST_ZP)
            return NULL;
    return q;
}

/* ---- ranges ---- */

/* A Clip, or Max and Min, of floats that lowering put before a Q: bounds are on its grid. Of
 * others' models the Clip is an operator and stays. */
static Node *range_clip(const Node *q, const Value **lo, const Value **hi) {
    Node *last = maker(q->in[0], "Clip"), *first = last;
    if (!last) {
        last = maker(q->in[0], "Min");
        first = last ? maker(last->in[0], "Max") : NULL;
    }
    if (!first ||
        !(pass_made(&last->from, PASS_lower_qdq) || pass_made(&last->from, PASS_lower_qop)))
        return NULL;
    *lo = constant(first, 1, ELEM_FLOAT);
    *hi = constant(last, first == last ? 2 : 1, ELEM_FLOAT);
    return *lo && *hi ? first : NULL;
}

/* The integer that all entries of the bound stand for. */
static bool on_grid(const Quant *q, const Tensor *bound, int64_t *out) {
    for (size_t i = 0; i < bound->count; i++) {
        size_t k = quant_index(q, bound->rank, bound->dims, i);
        float x = (float)tensor_float(bound, i);
        int64_t at = quant_of_real(q, k, x);
        if ((float)(at - quant_zp(q, k)) * quant_scale(q, k) != x || (i && at != *out))
            return false;
        *out = at;
    }
    return bound->count > 0;
}

static const Quant *ranged(Raise *r, const Node *n, Chain *c) {
    const Value *lo, *hi;
    const char *why;
    const Node *clip = is_onnx_quantize(n) ? range_clip(n, &lo, &hi) : NULL;
    const Quant *stated = clip ? raise_params(r, n, &why) : NULL;
    if (!stated || !on_grid(stated, value_data(lo), &c->lo) ||
        !on_grid(stated, value_data(hi), &c->hi) || c->lo >= c->hi)
        return NULL;
    Quant *q = quant_copy(r->b.a, stated);
    c->x = clip->in[0];
    c->scale = n->in[1];
    c->ranged = true;
    set_range(q, c);
    raise_one_bit(q);
    return quant_is_wide(q) ? NULL : q;
}

/* ---- raising ---- */

static Str id_key(const Node *n) {
    return (Str){(const char *)&n->id, sizeof n->id};
}

/* The operators before `last`, back to what reads x: gone, as long as `last` alone reads them. */
static bool take_steps(Raise *r, const Node *last, const Value *x, Emulated *e) {
    for (const Value *v = last->in[0]; v != x; v = v->def->in[0]) {
        if (e->n_steps == MAX_STEPS || uses_only_node(r->uses, v) == NULL)
            return false;
        e->steps[e->n_steps++] = v->def;
    }
    for (size_t i = 0; i < e->n_steps; i++)
        node_remove(e->steps[i]);
    return true;
}

static void become(Raise *r, Node *n, const char *op, const Chain *c, const Quant *q) {
    Emulated *e = NEW(r->b.a, Emulated);
    *e = (Emulated){.node = n, .was = *n, .q = q};
    if (!take_steps(r, n, c->x, e))
        return;
    map_set(r->emulated, id_key(n), e);
    n->op = str_from(op);
    n->n_attrs = 0;
    n->attrs = NULL;
    n->n_in = 2;
    n->in = NEW_ARRAY(r->b.a, Value *, 2);
    n->in[0] = c->x;
    n->in[1] = c->scale;
    op_resolve(n, r->b.d);
}

/* The product of a DQ of 32 bits is narrowed by the Cast that reads it. */
static bool goes_on(const Raise *r, const Node *n) {
    Chain c;
    const Node *user = n->n_out && n->out[0] ? uses_only_node(r->uses, n->out[0]) : NULL;
    return user && node_cast(user) && find_dequantize(user, &c);
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        Chain c;
        bool quantize = find_quantize(n, &c);
        bool found = quantize || (find_dequantize(n, &c) && !goes_on(r, n));
        const Quant *q = found ? type_of(r, &c) : ranged(r, n, &c);
        if (q)
            become(r, n, quantize || !found ? "QuantizeLinear" : "DequantizeLinear", &c, q);
    }
}

void raise_emulated(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}

const Quant *raise_emulated_params(const Raise *r, const Node *n) {
    const Emulated *e = map_get(r->emulated, id_key(n));
    return e ? e->q : NULL;
}

void raise_emulated_settle(Raise *r) {
    for (size_t i = 0; i < map_size(r->emulated); i++) {
        const Emulated *e = map_value(r->emulated, i);
        Node *n = e->node;
        if (!is_onnx_quantize(n) && !is_onnx_dequantize(n))
            continue;
        n->op = e->was.op;
        n->attrs = e->was.attrs;
        n->n_attrs = e->was.n_attrs;
        n->in = e->was.in;
        n->n_in = e->was.n_in;
        op_resolve(n, r->b.d);
        for (size_t k = e->n_steps; k-- > 0;)
            node_insert_before(n, e->steps[k]);
    }
}
