/* Lowering: Q and DQ take back the names and places they had in ONNX. See spelling.h. */
#include <stdlib.h>

#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/spelling.h"

typedef struct Want { /* a value and the name it had */
    Value *v;
    Str name;
} Want;

struct Spelled {
    Uses *uses;
    Map *cells;          /* constants by name, those of inner graphs by graph and name */
    Str *keys;           /* by node id: its first result's name, as the text has it */
    uint32_t first_node; /* nodes from here on were made by lowering */
    size_t *at, n_at;    /* by node id: its place + 1 */
    Want *wants;
    size_t n_wants, cap_wants;
};

/* ---- what a spelling says ---- */

static const Attr *said(const Node *n, const char *key) {
    const Attr *a = node_attr(n, key);
    return a && a->n ? a : NULL;
}

static Str said_name(const Node *n, const char *key, Str none) {
    const Attr *a = said(n, key);
    if (a && a->kind == ATTR_TENSOR)
        return a->v.t[0]->name;
    return a && a->kind == ATTR_STRING ? a->v.s[0] : none;
}

static bool says(const Node *n, const char *key, Str word) {
    const Attr *a = said(n, key);
    for (size_t i = 0; a && a->kind == ATTR_STRINGS && i < a->n; i++)
        if (str_eq(a->v.s[i], word))
            return true;
    return false;
}

static int64_t said_int(const Node *n, const char *key, int64_t none) {
    const Attr *a = said(n, key);
    return a && a->kind == ATTR_INT ? a->v.i[0] : none;
}

static bool is_q(const Node *n) {
    return str_is(n->op, "QuantizeLinear");
}

static bool is_dq(const Node *n) {
    return str_is(n->op, "DequantizeLinear");
}

bool spelled_plain(const Value *v, const char *word) {
    for (const Node *n = v->onnx; n; n = n->next)
        if (str_is(n->op, word))
            return true;
    return false;
}

/* ---- before ---- */

static Str cell_key(const Lower *l, const Graph *g, Str name) {
    if (g == l->b.m->graph)
        return name;
    Buf b = buf_new(l->b.a);
    buf_put(&b, &g, sizeof g);
    buf_str(&b, name);
    return buf_as_str(&b);
}

static void begin_graph(Graph *g, void *ctx) {
    Lower *l = ctx;
    for (size_t i = 0; i < g->n_consts; i++)
        map_set(l->spelled->cells, cell_key(l, g, g->consts[i]->name), g->consts[i]);
    FOR_NODES(n, g) {
        if (n->n_out && n->out[0]) {
            l->spelled->keys[n->id] = n->out[0]->name;
            if (node_is(n, "Constant"))
                map_set(l->spelled->cells, cell_key(l, g, n->out[0]->name), n->out[0]);
        }
    }
}

void spelling_begin(Lower *l) {
    Module *m = l->b.m;
    l->spelled = NEW(l->b.a, Spelled);
    l->spelled->cells = map_new(l->b.a);
    l->spelled->first_node = m->n_nodes;
    l->spelled->keys = NEW_ARRAY(l->b.a, Str, m->n_nodes + 1);
    module_each_graph(m, begin_graph, l);
}

static void want(Lower *l, Value *v, Str name) {
    Spelled *s = l->spelled;
    if (v->kind == VALUE_INPUT || lower_is_output(l, v))
        return; /* the interface keeps its names */
    Want w = {v, name};
    ARENA_PUSH(l->b.a, s->wants, s->n_wants, s->cap_wants, w);
}

/* ---- scales and zero points ---- */

static bool same_data(const Tensor *x, const Tensor *y) {
    return x && y && x->data && y->data && x->elem == y->elem && x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0 &&
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
    } else if (like && like->elem == t->elem && like->count == 1) {
        return canonical;
    }
    t->name = name;
    Graph *g = said_int(note, "local", 0) ? (Graph *)user : l->b.m->graph;
    Str k = cell_key(l, g, name);
    Value *known = map_get(l->spelled->cells, k);
    if (known)
        return same_data(value_data(known), t) ? known : canonical;
    Value *v = graph_add_const(g, name, tensor_type(l->b.a, t), t);
    map_set(l->spelled->cells, k, v);
    want(l, v, name);
    return v;
}

static bool may_drop_zp(const Node *note, const Quant *q) {
    return quant_zp_all_zero(q) && (is_dq(note) || q->storage == ELEM_UINT8 ||
                                    said_int(note, "output_dtype", 0) == (int64_t)q->storage);
}

QuantParams spelled_params(Lower *l, const Value *v, const Node *user, QuantParams p) {
    const Node *note = v->onnx;
    while (note && !is_q(note) && !is_dq(note))
        note = note->next;
    if (!note)
        return p;
    p.scale = cell(l, note, "scale", p.scale, user->graph);
    p.zp = cell(l, note, "zero_point", p.zp, user->graph);
    return p;
}

static void restore_params(Lower *l, Node *n, const Node *note, const Quant *q) {
    n->in[1] = cell(l, note, "scale", n->in[1], n->graph);
    const Attr *zp = said(note, "zero_point");
    bool named = zp && said_name(note, "zero_point", STR_NONE).n;
    if (named)
        n->in[2] = cell(l, note, "zero_point", n->in[2], n->graph);
    else if (!may_drop_zp(note, q))
        return;
    else if (zp)
        n->in[2] = NULL;
    else
        n->n_in = 2;
}

/* ---- float constants that were rounded ---- */

static Value *float_const(Lower *l, Value *v, const Tensor *data) {
    Tensor *t = arena_copy(l->b.a, data, sizeof *t);
    Str key = cell_key(l, v->graph, t->name);
    Value *known = map_get(l->spelled->cells, key);
    if (known && same_data(value_data(known), t))
        return known;
    known = graph_add_const(v->graph, t->name, tensor_type(l->b.a, t), t);
    map_set(l->spelled->cells, key, known);
    want(l, known, t->name);
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
               ? float_const(l, v, t)
               : NULL;
}

/* ---- attributes ---- */

static bool is_own_key(Str key) {
    static const char *const keys[] = {"in", "out", "of",   "scale",  "zero_point",
                                       "at", "to",  "data", "stated", "local"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (str_is(key, keys[i]))
            return true;
    return false;
}

static bool attrs_fit(const Node *n, const Node *note, const Quant *q) {
    int64_t axis = said_int(note, "axis", 1), want = said_int(n, "axis", -1);
    int64_t block = said_int(note, "block_size", 0), dtype = said_int(note, "output_dtype", 0);
    int rank = n->in[0]->type.rank;
    if (axis < 0 && rank >= 0)
        axis += rank;
    if ((want >= 0 && axis != want) || block != said_int(n, "block_size", 0))
        return false;
    if (is_q(note))
        return dtype == 0 || dtype == (int64_t)q->storage;
    int64_t have = said_int(n, "output_dtype", 0);
    return dtype == have || dtype == (int64_t)q->expressed;
}

static void restore_attrs(Lower *l, Node *n, const Node *note, const Quant *q) {
    if (!attrs_fit(n, note, q))
        return;
    Attr *attrs = NEW_ARRAY(l->b.a, Attr, note->n_attrs + 1);
    size_t k = 0;
    for (size_t i = 0; i < note->n_attrs; i++)
        if (!is_own_key(note->attrs[i].name))
            attrs[k++] = note->attrs[i];
    n->attrs = attrs;
    n->n_attrs = k;
}

/* ---- nodes ---- */

static void place_at(Lower *l, const Node *n, int64_t at) {
    Spelled *s = l->spelled;
    if (n->id >= s->n_at) {
        size_t size = (size_t)n->id * 2 + 64;
        s->at = arena_grow(l->b.a, s->at, s->n_at * sizeof *s->at, size * sizeof *s->at);
        memset(s->at + s->n_at, 0, (size - s->n_at) * sizeof *s->at);
        s->n_at = size;
    }
    s->at[n->id] = at >= 0 ? (size_t)at + 1 : 0;
}

static void dress(Lower *l, Node *n, const Node *note, const Quant *q) {
    restore_attrs(l, n, note, q);
    restore_params(l, n, note, q);
    int64_t at = said_int(note, "at", -1);
    if (at < 0)
        return;
    place_at(l, n, at);
    n->domain = note->domain;
    n->extra = note->extra;
    n->from = note->from;
    if (n->id >= l->spelled->first_node) {
        n->name = note->name;
        n->doc = note->doc;
        n->meta = note->meta;
        n->out[0]->declared = says(note, "stated", STR("out"));
    }
    op_resolve(n, l->b.d);
}

/* One more node of the kind that lowering made, from x. */
static Node *another(Lower *l, const char *op, Value *x, const Quant *q, Type t, Value *v) {
    Node *n = build_node(&l->b, x->graph, "", op, 1, STR_NONE);
    n->in[0] = x;
    n->loc = v->loc;
    node_from_value(n, v, l->b.pass);
    node_add_output(n, 0, derived_name(&l->b, v->name, "_again"), t);
    state_params(&l->b, n, q, is_dq(n) ? x->type : t, v->name);
    return n;
}

typedef struct One { /* one quantized value and the nodes around it */
    Lower *l;
    Value *v, *ints;
    const Quant *q;
    Node *quantize; /* what made the integers, or NULL */
    bool taken;     /* the spelling of it was found */
    Node **dq;      /* what reads them */
    Node **made;    /* those of them that lowering made */
    size_t n_dq, n_made, n_taken;
    Map *kept;    /* the others, by the name of the result */
    Map *readers; /* which result a consumer is to read, by result and operand */
    Map *names;   /* results of the nodes restored so far, by their ONNX names */
    Map *dqs;     /* names of the results of all DQ */
    Node *user;   /* some DQ, where nodes may be added; NULL: they would serve nobody */
} One;

/* The float constant that Q stood on, where it still gives these integers. */
static Value *float_data(One *o, const Node *note) {
    const Attr *a = said(note, "data");
    Lower *l = o->l;
    if (!a || a->kind != ATTR_TENSOR || !o->ints->data)
        return NULL;
    Tensor *t = a->v.t[0];
    if (t->elem != ELEM_FLOAT || !t->data || t->count != o->ints->data->count ||
        t->rank != o->ints->data->rank ||
        !same_data(const_quantize(l->b.a, t, o->q), o->ints->data))
        return NULL;
    return float_const(l, o->v, t);
}

static void restore_made_q(One *o, const Node *note, Str in, Str out) {
    Lower *l = o->l;
    Node *n = o->quantize;
    o->taken = true;
    dress(l, n, note, o->q);
    map_set(o->names, out, o->ints);
    if (n->id < l->spelled->first_node || said_int(note, "at", -1) < 0)
        return; /* it stood in the text and has names of its own */
    want(l, n->in[0], in);
    n->in[0]->declared = says(note, "stated", STR("in"));
    want(l, o->ints, out);
    if (!lower_is_output(l, o->ints))
        o->ints->declared = says(note, "stated", STR("out"));
}

static void restore_q(One *o, const Node *note) {
    Str in = said_name(note, "in", o->v->name), out = said_name(note, "out", o->v->name);
    bool chained = said(note, "in") && map_get(o->dqs, in);
    if (o->quantize && !o->taken && !chained) {
        restore_made_q(o, note, in, out);
        return;
    }
    Value *x = chained ? map_get(o->names, in) : NULL;
    if (!x && !chained)
        x = o->quantize ? o->quantize->in[0] : float_data(o, note);
    if (!x || !o->user)
        return;
    Node *n = another(o->l, "QuantizeLinear", x, o->q, o->ints->type, o->v);
    place_behind(x, n, o->user);
    dress(o->l, n, note, o->q);
    want(o->l, n->out[0], out);
    map_set(o->names, out, n->out[0]);
}

/* The node that stood in the text under this name, else one that lowering made. */
static Node *take_dq(One *o, Str out) {
    Node *kept = map_get(o->kept, out);
    if (kept) {
        map_set(o->kept, out, NULL);
        return kept;
    }
    return o->n_taken < o->n_made ? o->made[o->n_taken++] : NULL;
}

static Value *integers_of(One *o, const Node *note) {
    Str of = said_name(note, "of", STR_NONE);
    if (of.s && map_get(o->names, of))
        return map_get(o->names, of);
    for (const Node *q = o->v->onnx; q && !of.s; q = q->next)
        if (is_q(q)) {
            Value *made = map_get(o->names, said_name(q, "out", o->v->name));
            return made ? made : o->ints;
        }
    if (of.s && o->ints->kind == VALUE_CONST && said_int(note, "at", -1) >= 0)
        want(o->l, o->ints, of);
    return o->ints;
}

static Node *restore_dq(One *o, const Node *note) {
    Str out = said_name(note, "out", o->v->name);
    Value *x = integers_of(o, note);
    Node *n = take_dq(o, out);
    if (!n) {
        if (!o->user)
            return NULL;
        n = another(o->l, "DequantizeLinear", x, o->q, real_type(o->v->type), o->v);
        n->out[0]->type = real_type(type_quantized(o->ints->type, o->q));
        place_behind(x, n, o->user);
    } else if (x != n->in[0] && o->user) {
        node_remove(n);
        n->in[0] = x;
        place_behind(x, n, o->user);
    }
    dress(o->l, n, note, o->q);
    if (n->id >= o->l->spelled->first_node && said_int(note, "at", -1) >= 0)
        want(o->l, n->out[0], out);
    map_set(o->names, out, n->out[0]);
    return n;
}

static void note_readers(One *o, const Node *note, Node *dq) {
    const Attr *to = said(note, "to");
    for (size_t i = 0; dq && to && to->kind == ATTR_STRINGS && i < to->n; i++)
        map_set(o->readers, to->v.s[i], dq->out[0]);
}

/* Whose result the consumer is to read. */
static Value *reader_of(const One *o, const Use *use) {
    const Spelled *s = o->l->spelled;
    Str result = use->node && use->node->id < s->first_node ? s->keys[use->node->id] : STR_NONE;
    return map_get(o->readers, arena_strf(o->l->b.a, STR_FMT ":%zu", STR_ARG(result), use->index));
}

static void share_out(One *o, const Node *dq) {
    const Use *uses;
    size_t n = uses_of(o->l->spelled->uses, dq->out[0], &uses);
    for (size_t i = 0; i < n; i++) {
        Value *to = reader_of(o, &uses[i]);
        if (!to)
            continue;
        if (uses[i].node)
            uses[i].node->in[uses[i].index] = to;
        else
            uses[i].graph->out[uses[i].index] = to;
    }
}

/* What a QOperator's integers were called. */
static void name_operand(One *o, const Node *note) {
    Str name = said_name(note, is_q(note) ? "out" : "of", STR_NONE);
    if (o->l->qop && name.n && said_int(note, "at", -1) < 0)
        want(o->l, o->ints, name);
}

static void find_nodes(One *o) {
    Lower *l = o->l;
    const Node *def = o->ints->kind == VALUE_NODE ? o->ints->def : NULL;
    o->quantize = def && is_onnx_quantize(def) ? o->ints->def : NULL;
    const Use *uses;
    size_t n = uses_of(l->spelled->uses, o->ints, &uses);
    o->dq = NEW_ARRAY(l->b.a, Node *, n + 1);
    o->made = NEW_ARRAY(l->b.a, Node *, n + 1);
    for (size_t i = 0; i < n; i++) {
        Node *dq = uses[i].node;
        if (!dq || uses[i].index != 0 || !is_onnx_dequantize(dq))
            continue;
        o->dq[o->n_dq++] = dq;
        if (dq->id >= l->spelled->first_node)
            o->made[o->n_made++] = dq;
        else
            map_set(o->kept, dq->out[0]->name, dq);
    }
    o->user = l->qop || !o->n_dq ? NULL : o->dq[0];
}

static void restore_value(Lower *l, Value *v) {
    Arena *a = l->b.a;
    One o = {.l = l,
             .v = v,
             .q = onnx_quant(&l->b, lower_quant(l, v)),
             .ints = l->ints[v->id],
             .kept = map_new(a),
             .names = map_new(a),
             .dqs = map_new(a),
             .readers = map_new(a)};
    if (!o.ints)
        return;
    find_nodes(&o);
    for (Node *note = v->onnx; note; note = note->next)
        if (is_dq(note))
            map_set(o.dqs, said_name(note, "out", v->name), note);
    for (const Node *note = v->onnx; note; note = note->next) {
        name_operand(&o, note);
        if (is_q(note))
            restore_q(&o, note);
        else if (is_dq(note))
            note_readers(&o, note, restore_dq(&o, note));
    }
    for (size_t i = 0; i < o.n_dq; i++)
        share_out(&o, o.dq[i]);
    v->onnx = NULL;
}

static void restore_one(Value *v, void *ctx) {
    Lower *l = ctx;
    if (v->id < l->n && v->onnx && lower_quant(l, v))
        restore_value(l, v);
}

/* ---- names ---- */

static Str value_key(const Value *v) {
    return (Str){(const char *)&v->id, sizeof v->id};
}

typedef struct Names {
    Map *used, *wanted;
} Names;

static void note_kept(Value *v, void *ctx) {
    Names *n = ctx;
    if (!map_get(n->wanted, value_key(v)))
        map_set(n->used, v->name, v);
}

static void rename_values(Lower *l) {
    Spelled *s = l->spelled;
    Names n = {map_new(l->b.a), map_new(l->b.a)};
    edit_sweep(l->b.m);
    Uses *uses = uses_new(l->b.m);
    for (size_t i = 0; i < s->n_wants; i++)
        map_set(n.wanted, value_key(s->wants[i].v), s->wants[i].v);
    module_each_value(l->b.m, note_kept, &n);
    for (size_t i = 0; i < s->n_wants; i++) {
        Value *v = s->wants[i].v, *other = map_get(n.used, s->wants[i].name);
        if (other == v)
            continue;
        if (other && v->kind == VALUE_CONST && same_data(v->data, value_data(other)) &&
            (other->graph == l->b.m->graph || other->graph == v->graph)) {
            value_replace(l->b.m, uses, v, other); /* one constant, quantized in two ways */
            continue;
        }
        v->name = other ? unique_name(l->b.names, s->wants[i].name) : s->wants[i].name;
        map_set(n.used, v->name, v);
    }
    edit_sweep(l->b.m);
    edit_forget_infos(l->b.m);
    l->b.names = unique_names_new(l->b.m);
}

/* ---- order ---- */

/* Nodes that say their place stand there; the others, in order, where there is room. */
static size_t place_nodes(const Lower *l, const Graph *g, Node **out, size_t count) {
    const Spelled *s = l->spelled;
    size_t free = 0, said_places = 0;
    memset(out, 0, count * sizeof *out);
    FOR_NODES(n, g) {
        size_t at = n->id < s->n_at ? s->at[n->id] : 0;
        if (at && at <= count && !out[at - 1]) {
            out[at - 1] = n;
            said_places++;
        } else if (at) {
            s->at[n->id] = 0;
        }
    }
    FOR_NODES(n, g) {
        if (n->id < s->n_at && s->at[n->id])
            continue;
        while (out[free])
            free++;
        out[free] = n;
    }
    return said_places;
}

typedef struct Order {
    Map *seen; /* values of this graph that stand before */
    const Graph *g;
    bool ok;
} Order;

static void check_operands(Order *o, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        if (x && x->kind == VALUE_NODE && x->graph == o->g && !map_get(o->seen, value_key(x)))
            o->ok = false;
    }
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; (n->attrs[i].kind == ATTR_GRAPH || n->attrs[i].kind == ATTR_GRAPHS) &&
                           k < n->attrs[i].n;
             k++) {
            const Graph *body = n->attrs[i].v.g[k];
            FOR_NODES(inner, body)
            check_operands(o, inner);
            for (size_t j = 0; j < body->n_out; j++) {
                const Value *x = body->out[j];
                if (x && x->kind == VALUE_NODE && x->graph == o->g &&
                    !map_get(o->seen, value_key(x)))
                    o->ok = false;
            }
        }
}

static void order_nodes(Lower *l, Graph *g) {
    size_t count = 0;
    FOR_NODES(n, g)
    count++;
    Node **nodes = NEW_ARRAY(l->b.a, Node *, count + 1);
    if (!place_nodes(l, g, nodes, count))
        return;
    Order o = {map_new(l->b.a), g, true};
    for (size_t i = 0; i < count && o.ok; i++) {
        check_operands(&o, nodes[i]);
        for (size_t k = 0; k < nodes[i]->n_out; k++)
            if (nodes[i]->out[k])
                map_set(o.seen, value_key(nodes[i]->out[k]), nodes[i]);
    }
    if (!o.ok)
        return; /* the graph was edited: what lowering made stands */
    g->first = g->last = NULL;
    for (size_t i = 0; i < count; i++) {
        nodes[i]->prev = nodes[i]->next = NULL;
        graph_append(g, nodes[i]);
    }
}

typedef struct Ranked {
    Value *v;
    size_t rank;
} Ranked;

static int by_rank(const void *x, const void *y) {
    size_t a = ((const Ranked *)x)->rank, b = ((const Ranked *)y)->rank;
    return (a > b) - (a < b);
}

static void order_constants(Lower *l, Graph *g) {
    if (!g->initializers)
        return;
    Map *rank = map_new(l->b.a);
    size_t *places = NEW_ARRAY(l->b.a, size_t, g->n_initializers + 1);
    for (size_t i = 0; i < g->n_initializers; i++) {
        places[i] = i;
        map_set(rank, g->initializers[i], &places[i]);
    }
    Ranked *r = NEW_ARRAY(l->b.a, Ranked, g->n_consts + 1);
    for (size_t i = 0; i < g->n_consts; i++) {
        const size_t *at = map_get(rank, g->consts[i]->name);
        r[i] = (Ranked){g->consts[i], at ? *at : g->n_initializers + i};
    }
    qsort(r, g->n_consts, sizeof *r, by_rank);
    for (size_t i = 0; i < g->n_consts; i++)
        g->consts[i] = r[i].v;
    g->initializers = NULL;
    g->n_initializers = 0;
}

static void order_graph(Graph *g, void *ctx) {
    order_nodes(ctx, g);
    order_constants(ctx, g);
}

void spelling_restore(Lower *l) {
    l->spelled->uses = uses_new(l->b.m);
    module_each_value(l->b.m, restore_one, l);
    rename_values(l);
    module_each_graph(l->b.m, order_graph, l);
}
