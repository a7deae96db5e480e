/* Making and changing graphs, nodes and attributes. */
#include <assert.h>
#include <stdarg.h>

#include "ir/ir.h"

static Arena *arena_of(const Graph *g) {
    return g->module->arena;
}

Graph *graph_new(Module *m, Str name) {
    Graph *g = NEW(m->arena, Graph);
    g->module = m;
    g->name = name;
    return g;
}

static Value *value_new(Graph *g, ValueKind kind, Str name, Type t) {
    Value *v = NEW(arena_of(g), Value);
    v->name = name;
    v->kind = kind;
    v->type = t;
    v->graph = g;
    v->id = g->module->n_values++;
    return v;
}

Value *graph_add_input(Graph *g, Str name, Type t) {
    Value *v = value_new(g, VALUE_INPUT, name, t);
    ARENA_PUSH(arena_of(g), g->in, g->n_in, g->cap_in, v);
    return v;
}

Value *graph_add_const(Graph *g, Str name, Type t, Tensor *data) {
    Value *v = value_new(g, VALUE_CONST, name, t);
    v->data = data;
    ARENA_PUSH(arena_of(g), g->consts, g->n_consts, g->cap_consts, v);
    return v;
}

Value *value_of_no_graph(Module *m, Str name) {
    Value *v = NEW(m->arena, Value);
    v->name = name;
    v->kind = VALUE_CONST;
    v->id = m->n_values++;
    return v;
}

Value *graph_take_const(Graph *g, Value *v, Type t) {
    assert(v->kind == VALUE_CONST && !v->graph);
    v->type = t;
    v->graph = g;
    ARENA_PUSH(arena_of(g), g->consts, g->n_consts, g->cap_consts, v);
    return v;
}

void graph_add_output(Graph *g, Value *v) {
    ARENA_PUSH(arena_of(g), g->out, g->n_out, g->cap_out, v);
}

/* ---- nodes ---- */

const Function *graph_function(const Graph *g) {
    while (g->owner)
        g = g->owner->graph;
    return g->function;
}

Node *node_new(Graph *g, Str domain, Str op, size_t n_in, size_t n_out) {
    Arena *a = arena_of(g);
    Node *n = NEW(a, Node);
    n->op = op;
    n->domain = domain;
    n->n_in = n_in;
    n->n_out = n_out;
    n->in = NEW_ARRAY(a, Value *, n_in);
    n->out = NEW_ARRAY(a, Value *, n_out);
    n->graph = g;
    n->id = g->module->n_nodes++;
    return n;
}

Node *node_like(Graph *g, const Node *n) {
    Node *like = node_new(g, n->domain, n->op, n->n_in, n->n_out);
    like->overload = n->overload;
    like->from = n->from;
    like->doc = n->doc;
    like->meta = n->meta;
    like->extra = n->extra;
    like->loc = n->loc;
    return like;
}

Value *node_add_output(Node *n, size_t index, Str name, Type t) {
    assert(index < n->n_out && !n->out[index]);
    Value *v = value_new(n->graph, VALUE_NODE, name, t);
    v->def = n;
    v->index = (int)index;
    n->out[index] = v;
    return v;
}

void node_take_result(Node *n, size_t index, Value *v) {
    const Node *had = v->def;
    if (had && (size_t)v->index < had->n_out && had->out[v->index] == v)
        had->out[v->index] = NULL;
    v->def = n;
    v->index = (int)index;
    n->out[index] = v;
}

void node_follow(Node *n, size_t index, Node *to, Str name, Type t) {
    node_take_result(to, 0, n->out[index]);
    to->in[0] = node_add_output(n, index, name, t);
    to->loc = n->loc;
    node_insert_after(n, to);
}

void node_add_input(Node *n, Value *v) {
    n->in = arena_grow(arena_of(n->graph), n->in, n->n_in * sizeof *n->in,
                       (n->n_in + 1) * sizeof *n->in);
    n->in[n->n_in++] = v;
}

static void link_between(Graph *g, Node *prev, Node *n, Node *next) {
    n->graph = g;
    n->prev = prev;
    n->next = next;
    *(prev ? &prev->next : &g->first) = n;
    *(next ? &next->prev : &g->last) = n;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            n->out[i]->graph = g;
}

void graph_append(Graph *g, Node *n) {
    link_between(g, g->last, n, NULL);
}
void node_insert_before(Node *at, Node *n) {
    link_between(at->graph, at->prev, n, at);
}
void node_insert_after(Node *at, Node *n) {
    link_between(at->graph, at, n, at->next);
}

void node_remove(Node *n) {
    Graph *g = n->graph;
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
}

bool node_is_in(const Node *n, const char *domain, const char *op) {
    return str_is(n->op, op) && domain_equal(n->domain, str_from(domain));
}

bool attr_is_ref(const Attr *a) {
    return a->ref.n > 0;
}

bool attr_holds(const Attr *a, AttrKind kind) {
    return a && a->kind == kind && a->n > 0;
}

const Attr *attr_find(const Attr *attrs, size_t n, Str name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(attrs[i].name, name))
            return &attrs[i];
    return NULL;
}

size_t attr_graphs(const Attr *a) {
    return a->kind == ATTR_GRAPH || a->kind == ATTR_GRAPHS ? a->n : 0;
}

bool has_bodies(const Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++)
        if (attr_graphs(&n->attrs[i]))
            return true;
    return false;
}

bool node_is(const Node *n, const char *op) {
    return str_is(n->op, op) && domain_is_onnx(n->domain);
}

const char *node_text(const Node *n) {
    Buf b = buf_new(arena_of(n->graph));
    buf_text(&b, "node ");
    if (n->name.n)
        buf_quoted(&b, n->name);
    else if (n->n_out && n->out[0]) {
        buf_text(&b, "of ");
        buf_quoted(&b, n->out[0]->name);
    }
    buf_text(&b, " (");
    buf_escaped(&b, n->op);
    buf_byte(&b, ')');
    return buf_as_str(&b).s;
}

const char *node_strf(const Node *n, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    Buf b = buf_new(arena_of(n->graph));
    buf_fmt_v(&b, fmt, ap);
    va_end(ap);
    return buf_as_str(&b).s;
}

bool value_is_const(const Value *v) {
    return v->kind == VALUE_CONST && v->data && !tensor_is_absent(v->data);
}

/* ---- attributes ---- */

const Attr *node_attr(const Node *n, const char *name) {
    return attr_find(n->attrs, n->n_attrs, str_from(name));
}

int value_rank(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR ? v->type.rank : -1;
}

Value *node_input(const Node *n, size_t i) {
    return i < n->n_in ? n->in[i] : NULL;
}

int64_t node_int(const Node *n, const char *name, int64_t none) {
    const Attr *a = name ? node_attr(n, name) : NULL;
    return attr_holds(a, ATTR_INT) ? a->v.i[0] : none;
}

float node_float(const Node *n, const char *name, float none) {
    const Attr *a = name ? node_attr(n, name) : NULL;
    return attr_holds(a, ATTR_FLOAT) ? a->v.f[0] : none;
}

/* The attribute of that name, emptied, or a new one at the end. */
static Attr *attr_set(Node *n, const char *name, AttrKind kind, size_t count) {
    Arena *a = arena_of(n->graph);
    Attr *at = (Attr *)node_attr(n, name);
    if (!at) {
        n->attrs = arena_grow(a, n->attrs, n->n_attrs * sizeof *n->attrs,
                              (n->n_attrs + 1) * sizeof *n->attrs);
        at = &n->attrs[n->n_attrs++];
    }
    *at = (Attr){.name = arena_str(a, str_from(name)), .kind = kind, .n = count};
    return at;
}

void node_set_attr(Node *n, const Attr *from) {
    Arena *a = arena_of(n->graph);
    Attr *at = attr_set(n, arena_str(a, from->name).s, from->kind, from->n);
    Attr copy = *from;
    copy.name = at->name;
    if (attr_holds(from, ATTR_FLOAT) || attr_holds(from, ATTR_FLOATS))
        copy.v.f = arena_copy(a, from->v.f, from->n * sizeof *from->v.f);
    else if (attr_holds(from, ATTR_INT) || attr_holds(from, ATTR_INTS))
        copy.v.i = arena_copy(a, from->v.i, from->n * sizeof *from->v.i);
    *at = copy;
}

void node_set_ints(Node *n, const char *name, const int64_t *v, size_t count) {
    const int64_t *copy = arena_copy(arena_of(n->graph), v, count * sizeof *v);
    attr_set(n, name, ATTR_INTS, count)->v.i = copy;
}

void node_set_int(Node *n, const char *name, int64_t v) {
    const int64_t *copy = arena_copy(arena_of(n->graph), &v, sizeof v);
    attr_set(n, name, ATTR_INT, 1)->v.i = copy;
}

void node_set_float(Node *n, const char *name, float v) {
    const float *copy = arena_copy(arena_of(n->graph), &v, sizeof v);
    attr_set(n, name, ATTR_FLOAT, 1)->v.f = copy;
}

Str node_meta(const Node *n, Str key) {
    for (size_t i = 0; i < n->meta.n; i++)
        if (str_eq(n->meta.items[i].key, key))
            return n->meta.items[i].value;
    return STR_NONE;
}

void meta_set(Arena *a, Meta *meta, Str key, Str value) {
    StrPair *items = NEW_ARRAY(a, StrPair, meta->n + 1); /* lists may be shared */
    size_t at = 0;
    if (meta->n)
        memcpy(items, meta->items, meta->n * sizeof *items);
    while (at < meta->n && !str_eq(items[at].key, key))
        at++;
    items[at] = (StrPair){.key = key, .value = value};
    *meta = (Meta){items, meta->n + (at == meta->n)};
}

void node_set_string(Node *n, const char *name, Str v) {
    const Str *copy = arena_copy(arena_of(n->graph), &v, sizeof v);
    attr_set(n, name, ATTR_STRING, 1)->v.s = copy;
}

void node_set_tensor(Node *n, const char *name, Tensor *t) {
    Tensor *const *copy = arena_copy(arena_of(n->graph), &t, sizeof(Tensor *));
    attr_set(n, name, ATTR_TENSOR, 1)->v.t = copy;
}

void node_drop_attr(Node *n, const char *name) {
    Attr *at = (Attr *)node_attr(n, name);
    if (!at)
        return;
    n->n_attrs--;
    memmove(at, at + 1, (size_t)(n->attrs + n->n_attrs - at) * sizeof *at);
}
