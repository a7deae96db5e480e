/* Lowering: scales, zero points and float data as they stood in ONNX. See lower_spelling.h. */
#include "passes/const_quant.h"
#include "passes/lower/lower_spelling.h"

Str cell_key(const Lower *l, const Graph *g, Str name) {
    if (g == l->b.m->graph)
        return name;
    Buf b = buf_new(l->b.a);
    buf_put(&b, &g, sizeof g);
    buf_str(&b, name);
    return buf_as_str(&b);
}

/* ---- scales and zero points ---- */

bool cell_same_data(const Tensor *x, const Tensor *y) {
    return x && y && x->data && y->data && x->elem == y->elem && tensor_same_shape(x, y) &&
           x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
}

/* The canonical constant's numbers under the name, and in the shape, that the spelling says. */
static Value *cell(Lower *l, const Node *note, const char *key, Value *canonical,
                   const Graph *user) {
    const Attr *a = said(note, key);
    Str name = said_name(note, key, STR_NONE);
    if (!a || !name.n)
        return canonical;
    Tensor *t = arena_copy(l->b.a, canonical->data, sizeof *t);
    const Tensor *like = a->kind == ATTR_TENSOR ? a->v.t[0] : NULL;
    if (like && like->elem == t->elem && like->count == t->count) {
        *t = *like;
        t->data = canonical->data->data;
        /* Numbers that stood in a file of their own are still those, or part of the model now. */
        if (like->place != TENSOR_INLINE && !cell_same_data(like, t)) {
            t->place = TENSOR_INLINE;
            t->external = (Meta){0};
        }
    } else if (like && like->elem == t->elem && like->count == 1) {
        return canonical;
    }
    t->name = name;
    Graph *g = said_int(note, "local", 0) ? (Graph *)user : l->b.m->graph;
    Str k = cell_key(l, g, name);
    Value *known = map_get(l->spelled->cells, k);
    if (known)
        return cell_same_data(value_data(known), t) ? known : canonical;
    Value *v = graph_add_const(g, name, tensor_type(l->b.a, t), t);
    map_set(l->spelled->cells, k, v);
    name_wanted(l, v, name);
    return v;
}

/* Where output_dtype alone says the type, onnxruntime takes it for uint8 as soon as it fuses. */
static bool may_drop_zp(const Lower *l, const Node *note, const Quant *q) {
    bool by_dtype = said_int(note, "output_dtype", 0) == (int64_t)q->storage;
    return quant_zp_all_zero(q) &&
           (notes_dq(note) || q->storage == ELEM_UINT8 || (by_dtype && !l->c->target->no_dtype));
}

QuantParams spelled_params(Lower *l, const Value *v, const Node *user, QuantParams p) {
    const Node *note = v->onnx;
    while (note && !notes_q(note) && !notes_dq(note))
        note = note->next;
    if (!note)
        return p;
    p.scale = cell(l, note, "scale", p.scale, user->graph);
    p.zp = cell(l, note, "zero_point", p.zp, user->graph);
    return p;
}

void cells_restore(Lower *l, Node *n, const Node *note, const Quant *q) {
    n->in[1] = cell(l, note, "scale", n->in[1], n->graph);
    const Attr *zp = said(note, "zero_point");
    bool named = zp && said_name(note, "zero_point", STR_NONE).n;
    if (named)
        n->in[2] = cell(l, note, "zero_point", n->in[2], n->graph);
    else if (!may_drop_zp(l, note, q))
        return;
    else if (zp)
        n->in[2] = NULL;
    else
        n->n_in = 2;
}

/* ---- float constants that were rounded ---- */

Value *cell_float(Lower *l, Value *v, const Tensor *data) {
    Tensor *t = arena_copy(l->b.a, data, sizeof *t);
    Str key = cell_key(l, v->graph, t->name);
    Value *known = map_get(l->spelled->cells, key);
    if (known && cell_same_data(value_data(known), t))
        return known;
    known = graph_add_const(v->graph, t->name, tensor_type(l->b.a, t), t);
    map_set(l->spelled->cells, key, known);
    name_wanted(l, known, t->name);
    return known;
}

Value *spelled_float_bias(Lower *l, Value *v) {
    const Attr *a = NULL;
    for (const Node *n = v->onnx; n && !a; n = n->next)
        a = str_is(n->op, "float") ? said(n, "data") : NULL;
    if (!a || a->kind != ATTR_TENSOR || !v->data)
        return NULL;
    const Tensor *t = a->v.t[0];
    const Quant *q = lower_quant(l, v);
    size_t n = v->data->count;
    if (t->elem != ELEM_FLOAT || !t->data || q->storage != ELEM_INT32 || q->n_axes > 1 ||
        (t->count != 1 && t->count != n) || (q->n_scale != 1 && q->n_scale != n) ||
        !quant_zp_all_zero(q) || !v->data->data)
        return NULL;
    const Tensor *ints = const_bias(l->b.a, t, q, n);
    return ints->bytes == v->data->bytes && memcmp(ints->data, v->data->data, ints->bytes) == 0
               ? cell_float(l, v, t)
               : NULL;
}
