/* See ir/provenance.h. */
#include "ir/provenance.h"

/* ---- what exporters say about groups ---- */

static Str metadata(const Node *n, const char *key) {
    for (size_t i = 0; i < n->meta.n; i++)
        if (str_is(n->meta.items[i].key, key))
            return n->meta.items[i].value;
    return STR_NONE;
}

/* The last but one item of a list as Python prints it: ['a', 'b', 'c']. The last is the operation
 * itself, those before it are the modules around it. */
static Str innermost(Str list) {
    Str items[2] = {STR_NONE, STR_NONE};
    for (size_t i = 0; i < list.n; i++) {
        char quote = list.s[i];
        if (quote != '\'' && quote != '"')
            continue;
        const char *end = memchr(list.s + i + 1, quote, list.n - i - 1);
        if (!end)
            break;
        items[0] = items[1];
        items[1] = (Str){list.s + i + 1, (size_t)(end - list.s) - i - 1};
        i = (size_t)(end - list.s);
    }
    return items[0];
}

/* What follows the last dot. */
static Str class_name(Str s) {
    for (size_t i = s.n; i > 0; i--)
        if (s.s[i - 1] == '.')
            return (Str){s.s + i, s.n - i};
    return s;
}

static Str joined(Arena *a, Str name, const char *between, Str rest) {
    return name.n && rest.n
               ? arena_strf(a, STR_FMT "%s" STR_FMT, STR_ARG(name), between, STR_ARG(rest))
           : name.n ? name
           : rest.n ? rest
                    : STR_NONE;
}

static size_t find_colon(Str s) {
    for (size_t i = 0; i + 1 < s.n; i++)
        if (s.s[i] == ':' && s.s[i + 1] == ' ')
            return i;
    return s.n;
}

/* "layer1: a.B/layer1.0: c.D/conv: aten.conv2d": the last but one, without packages. */
static Str innermost_namespace(Arena *a, Str path) {
    size_t end = path.n, begin;
    while (end > 0 && path.s[end - 1] != '/')
        end--;
    if (end == 0)
        return STR_NONE;
    for (begin = --end; begin > 0 && path.s[begin - 1] != '/';)
        begin--;
    Str part = {path.s + begin, end - begin};
    size_t colon = find_colon(part);
    Str class = colon < part.n ? (Str){part.s + colon + 2, part.n - colon - 2} : STR_NONE;
    return joined(a, (Str){part.s, colon}, ": ", class_name(class));
}

Str node_group(const Node *n) {
    if (n->from.in.n)
        return n->from.in;
    if (!n->meta.n)
        return STR_NONE;
    Arena *a = n->graph->module->arena;
    Str scope = innermost(metadata(n, "pkg.torch.onnx.name_scopes"));
    Str class = class_name(innermost(metadata(n, "pkg.torch.onnx.class_hierarchy")));
    if (scope.n || class.n)
        return joined(a, scope, ": ", class);
    Str space = metadata(n, "namespace");
    return innermost_namespace(a, space.n ? space : metadata(n, "pkg.torch.onnx.namespace"));
}

/* The part that two groups have in common: "a.b: C" and "a.d: E" are both in "a". */
static Str common_group(Str x, Str y) {
    if (str_eq(x, y))
        return x;
    size_t nx = find_colon(x), ny = find_colon(y), n = 0, i = 0;
    for (; i < nx && i < ny && x.s[i] == y.s[i]; i++)
        if (x.s[i] == '.' || x.s[i] == '/')
            n = i;
    bool ends_x = i == nx || x.s[i] == '.' || x.s[i] == '/';
    bool ends_y = i == ny || y.s[i] == '.' || y.s[i] == '/';
    if (ends_x && ends_y)
        n = i;
    return n ? (Str){x.s, n} : STR_NONE;
}

/* ---- origins ---- */

static bool same_origin(const Origin *x, const Origin *y) {
    return str_eq(x->name, y->name) && str_eq(x->op, y->op) && str_eq(x->domain, y->domain);
}

/* Nodes without a name are told apart by nothing: two of them are two. */
static void add(Arena *a, Provenance *p, const Origin *o) {
    for (size_t i = 0; i < p->n; i++)
        if (o->name.n && same_origin(&p->from[i], o))
            return;
    if (p->n == MAX_ORIGINS)
        return;
    Origin *from = NEW_ARRAY(a, Origin, p->n + 1); /* lists may be shared: never grown in place */
    if (p->n)
        memcpy(from, p->from, p->n * sizeof *from);
    from[p->n++] = *o;
    p->from = from;
}

static void add_all(Arena *a, Provenance *p, const Provenance *from) {
    for (size_t i = 0; i < from->n; i++)
        add(a, p, &from->from[i]);
}

/* What a node says of those that are made from it. */
static Provenance of_node(const Node *n) {
    Provenance p = n->from;
    if (!p.n)
        add(n->graph->module->arena, &p, &(Origin){n->domain, n->op, n->name});
    p.in = node_group(n);
    return p;
}

static Provenance of_value(const Value *v) {
    if (v->def)
        return of_node(v->def);
    Provenance p = v->from;
    if (!p.n)
        add(v->graph->module->arena, &p, &(Origin){.name = v->name});
    return p;
}

/* Values belong to no part of the model. */
static bool names_node(const Provenance *p) {
    for (size_t i = 0; i < p->n; i++)
        if (p->from[i].op.n)
            return true;
    return false;
}

static void extend(Arena *a, Provenance *p, Provenance with, const char *by) {
    if (!names_node(p))
        p->in = with.in;
    else if (names_node(&with))
        p->in = common_group(p->in, with.in);
    add_all(a, p, &with);
    p->by = str_from(by);
}

/* The innermost call that both stand in. */
static const Node *common_call(const Node *x, const Node *y) {
    for (; x; x = x->within)
        for (const Node *k = y; k; k = k->within)
            if (k == x)
                return x;
    return NULL;
}

/* What nodes inside and outside of a call have become stands outside. */
static void stand_with(Node *made, const Node *source) {
    if (!source)
        return;
    bool first = !names_node(&made->from);
    if (first && !made->within)
        made->within = source->within;
    else if (!first)
        made->within = common_call(made->within, source->within);
}

void node_from(Node *made, const Node *source, const char *by) {
    stand_with(made, source);
    if (source)
        extend(made->graph->module->arena, &made->from, of_node(source), by);
}

void node_from_value(Node *made, const Value *source, const char *by) {
    stand_with(made, source ? source->def : NULL);
    if (source)
        extend(made->graph->module->arena, &made->from, of_value(source), by);
}

void node_becomes(Node *n, const char *by) {
    n->from = of_node(n);
    n->from.by = str_from(by);
}

void node_absorb(Node *n, const Node *other, const char *by) {
    node_becomes(n, by);
    node_from(n, other, by);
}

void value_from(Value *made, const Value *source, const char *by) {
    if (source)
        extend(made->graph->module->arena, &made->from, of_value(source), by);
}

void value_from_node(Value *made, const Node *source, const char *by) {
    if (source)
        extend(made->graph->module->arena, &made->from, of_node(source), by);
}

bool value_became_of(const Value *v, const Node *n) {
    if (!n || !v->def)
        return false;
    const Provenance *p = &v->def->from;
    for (size_t i = 0; n->name.n && i < p->n; i++)
        if (str_eq(p->from[i].name, n->name) && str_eq(p->from[i].op, n->op))
            return true;
    return v->def == n;
}

/* ---- functions ---- */

void node_inlined(Node *copy, const Node *body, const Node *call, const char *by) {
    stand_with(copy, call);
    Arena *a = copy->graph->module->arena;
    /* A call that was inlined itself has the outer call's name in front of its own by now. */
    Str name = call->from.n ? call->from.from[0].name : call->name;
    Str group = joined(a, name, ": ", call->op);
    copy->from = of_node(body);
    Str inner = copy->from.in;
    copy->from.by = str_from(by);
    copy->from.in = joined(a, joined(a, node_group(call), "/", group), "/", inner);
}
