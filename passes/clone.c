#include "passes/clone.h"

#include "ir/ops/op.h"
#include "ir/provenance.h"
#include "passes/library.h"
#include "passes/quant_build.h"

static Arena *arena_of(const Graph *g) {
    return g->module->arena;
}

static void set_slot(Clone *c, const Module *m, const Value *from, CloneSlot slot) {
    if (from->id >= c->cap) {
        size_t most = from->id < m->n_values ? m->n_values : from->id; /* of the library's */
        size_t cap = most + most / 2 + 1;
        CloneSlot *map = NEW_ARRAY(m->arena, CloneSlot, cap);
        if (c->cap)
            memcpy(map, c->map, c->cap * sizeof *map);
        c->map = map;
        c->cap = cap;
    }
    c->map[from->id] = slot;
}

void clone_map(Clone *c, Module *m, const Value *from, Value *to) {
    set_slot(c, m, from, (CloneSlot){.to = to, .set = true});
}

void clone_claim(Clone *c, Module *m, const Value *from, Value *to) {
    set_slot(c, m, from, (CloneSlot){.to = to, .set = true, .claimed = true});
}

/* The value claimed for what `from` is, once: the next copy of the same body has its own. */
static Value *claimed(const Clone *c, const Value *from) {
    if (from->id >= c->cap || !c->map[from->id].claimed)
        return NULL;
    c->map[from->id].claimed = false;
    return c->map[from->id].to;
}

Value *clone_value(const Clone *c, Value *v) {
    return v && v->id < c->cap && c->map[v->id].set ? c->map[v->id].to : v;
}

/* "conv1/weight"; what has no name keeps none. */
static Str prefixed(const Clone *c, const Graph *g, Str name) {
    if (!name.n)
        return name;
    if (c->composite)
        return unique_name(c->names, arena_strf(arena_of(g), STR_FMT "_" STR_FMT, STR_ARG(c->base),
                                                STR_ARG(name)));
    Buf b = buf_new(arena_of(g));
    buf_str(&b, c->prefix);
    if (name.s[0] != '/')
        buf_byte(&b, '/');
    buf_str(&b, name);
    return unique_name(c->names, buf_as_str(&b));
}

/* Symbols of a function's types mean nothing outside of it. */
static Type outside_type(Arena *a, const Clone *c, Type t) {
    if (!c->call || t.kind != TYPE_TENSOR || t.rank <= 0)
        return t;
    Dim *dims = arena_copy(a, t.dims, (size_t)t.rank * sizeof *dims);
    for (int i = 0; i < t.rank; i++)
        if (dims[i].value < 0)
            dims[i] = (Dim){.value = -1};
    t.dims = dims;
    return t;
}

static void copy_facts(const Clone *c, const Value *from, Value *to) {
    to->sparse = from->sparse;
    to->stat = from->stat;
    to->from = from->from;
    to->declared = !c->call && from->declared;
    to->stated = to->declared ? from->stated : NULL;
    to->doc = from->doc;
    to->meta = from->meta;
    to->loc = from->loc;
}

static void define(Clone *c, Graph *g, const Value *from, Value *to) {
    copy_facts(c, from, to);
    clone_map(c, g->module, from, to);
}

/* ---- attributes ---- */

static Graph *clone_subgraph(Clone *c, const Graph *from, Node *owner) {
    Graph *to = graph_new(from->module, from->name);
    to->owner = owner;
    to->doc = from->doc;
    to->meta = from->meta;
    to->loc = from->loc;
    Arena *a = arena_of(from);
    for (size_t i = 0; i < from->n_in; i++) {
        Value *v = from->in[i];
        Value *in = graph_add_input(to, prefixed(c, to, v->name), outside_type(a, c, v->type));
        in->data = v->data;
        define(c, to, v, in);
    }
    clone_body(c, from, to);
    for (size_t i = 0; i < from->n_out; i++) {
        Value *v = clone_value(c, from->out[i]);
        if (v)
            graph_add_output(to, v);
        else
            c->ok =
                diag_error(from->module->diags, owner->loc,
                           "%s: a subgraph yields '%s', which the call leaves out",
                           node_text(owner), diag_name(from->module->diags, from->out[i]->name));
    }
    return to;
}

/* The length of a dimension, as a number or a list of one. */
static const Attr *length_attr(const Clone *c, const Attr *a, Arena *arena) {
    const Dim *d = c->composite ? function_length(c->f, c->call, a->ref) : NULL;
    Attr *made = NEW(arena, Attr);
    *made = (Attr){.kind = a->kind == ATTR_INTS ? ATTR_INTS : ATTR_INT, .n = 1};
    made->v.i = d ? arena_copy(arena, &d->value, sizeof d->value) : NULL;
    return d ? made : NULL;
}

/* What the attribute is in this call: the call's, else the function's default, else the length of a
 * dimension, else none. */
static const Attr *referred(const Clone *c, const Attr *a, Arena *arena) {
    if (!attr_is_ref(a) || !c->call)
        return a;
    const Attr *stated = attr_find(c->call->attrs, c->call->n_attrs, a->ref);
    stated = stated ? stated : attr_find(c->f->defaults, c->f->n_defaults, a->ref);
    return stated ? stated : length_attr(c, a, arena);
}

/* A graph that the call gives stands in the caller's graph: nothing in it is the body's. */
static Graph *clone_given(Clone *c, const Graph *from, Node *owner) {
    Clone given = {.names = c->names, .prefix = c->composite ? c->base : c->prefix, .ok = true};
    Graph *to = clone_subgraph(&given, from, owner);
    c->nodes += given.nodes;
    c->ok = c->ok && given.ok;
    return to;
}

static void clone_attrs(Clone *c, const Node *from, Node *to) {
    Arena *a = arena_of(to->graph);
    to->attrs = NEW_ARRAY(a, Attr, from->n_attrs);
    for (size_t i = 0; i < from->n_attrs; i++) {
        const Attr *is = referred(c, &from->attrs[i], a);
        if (!is)
            continue;
        Attr *at = &to->attrs[to->n_attrs++];
        *at = *is;
        at->name = from->attrs[i].name;
        if (is != &from->attrs[i] && !at->given.n)
            at->given = is->name;
        if (from->attrs[i].kind == ATTR_INTS && at->kind == ATTR_INT)
            at->kind = ATTR_INTS; /* a list of one */
        if (!attr_graphs(at))
            continue;
        bool given = c->call && attr_find(c->call->attrs, c->call->n_attrs, is->name) == is;
        Graph **graphs = NEW_ARRAY(a, Graph *, at->n);
        for (size_t k = 0; k < at->n; k++)
            graphs[k] = (given ? clone_given : clone_subgraph)(c, is->v.g[k], to);
        at->v.g = graphs;
    }
}

/* ---- nodes ---- */

/* What a function states of its values nobody checks: what is inferred in the call is better. */
static Type result_type(const Clone *c, const Value *from, Arena *a) {
    bool inferred = c->call && from->def->def && from->def->def->infer && !from->type.quant;
    return inferred ? TYPE_UNKNOWN : outside_type(a, c, from->type);
}

static bool is_read(const Graph *body, const Value *v) {
    for (const Node *n = body->first; n; n = n->next) {
        if (has_bodies(n))
            return true; /* who knows what is in them */
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] == v)
                return true;
    }
    return false;
}

static void clone_result(Clone *c, const Value *from, Node *n, size_t index) {
    Value *v = claimed(c, from);
    if (!v && c->composite && index > 0 && !is_read(from->graph, from)) {
        return;
    }
    if (!v) {
        Type t = result_type(c, from, arena_of(n->graph));
        Str name = c->composite ? n->op : from->name;
        define(c, n->graph, from, node_add_output(n, index, prefixed(c, n->graph, name), t));
        return;
    }
    node_take_result(n, index, v);
    v->graph = n->graph;
}

/* Numbers of a composite are of the type that it computes with. */
static bool clone_constant(Clone *c, Node *to, const Value *from) {
    if (!c->composite || !node_is_constant(from->def) || from->id >= c->cap ||
        c->map[from->id].claimed)
        return false;
    Arena *a = arena_of(to->graph);
    const Tensor *t = op_resolve(to, to->graph->module->mute) ? to->def->constant(to) : NULL;
    if (!t)
        return false;
    bool number = !node_attr(to, "value") && t->elem == ELEM_FLOAT;
    Tensor *data = number ? floats_as(a, t, c->elem) : (Tensor *)t;
    Value *v =
        graph_add_const(to->graph, prefixed(c, to->graph, from->name), tensor_type(a, data), data);
    clone_map(c, to->graph->module, from, v);
    node_remove(to);
    return true;
}

/* What computes most of a composite is what rules about it mean: a product, a normalization. */
static Str composite_name(Clone *c, const Node *from, const Node *n) {
    const QuantRule *q = from->def ? &from->def->quant : NULL;
    bool first = !c->named && q && (q->kind == QUANT_MAC || q->scaled.proportional);
    Str name = c->call->name;
    c->named |= first;
    return !name.n || first
               ? name
               : unique_name(c->names, arena_strf(arena_of(n->graph), STR_FMT "_" STR_FMT,
                                                  STR_ARG(name), STR_ARG(n->op)));
}

static void clone_node(Clone *c, const Node *from, Graph *g) {
    Node *to = node_like(g, from);
    c->nodes++;
    for (size_t i = 0; i < from->n_in; i++)
        to->in[i] = clone_value(c, from->in[i]);
    graph_append(g, to);
    clone_attrs(c, from, to);
    if (from->n_out && from->out[0] && clone_constant(c, to, from->out[0]))
        return;
    for (size_t i = 0; i < from->n_out; i++)
        if (from->out[i])
            clone_result(c, from->out[i], to, i);
    if (c->composite) {
        while (to->n_out > 1 && !to->out[to->n_out - 1])
            to->n_out--;
        while (to->n_in > 0 && !to->in[to->n_in - 1])
            to->n_in--;
        to->loc = c->call->loc;
        to->name = composite_name(c, from, to);
        node_from(to, c->call, c->by);
        return;
    }
    to->name = prefixed(c, g, from->name); /* last: names of values are the better known */
    if (c->call)
        node_inlined(to, from, c->call, c->by);
}

void clone_body(Clone *c, const Graph *from, Graph *to) {
    for (size_t i = 0; i < from->n_consts; i++) {
        Value *v = from->consts[i];
        define(c, to, v, graph_add_const(to, prefixed(c, to, v->name), v->type, v->data));
    }
    for (const Node *n = from->first; n && c->ok; n = n->next)
        clone_node(c, n, to);
}
