/* See compiler/stated.h. */
#include "compiler/stated.h"

#include <stdlib.h>

#include "compiler/scheme_nodes.h"
#include "frontend/qir/qir_parts.h"
#include "frontend/qir/qir_read.h"
#include "ir/ops/op.h"
#include "passes/stated.h"

typedef struct Ranged { /* what a range made of an annotation's quantization */
    Quant *q;
    struct Ranged *next; /* of the same, with another range */
} Ranged;

typedef struct Taker {
    Module *m;
    Diags *d;
    QirParts *parts;
    Map *lines;  /* by alias: the Quant of that name */
    Map *ranged; /* by Quant*: Ranged */
    Map *by;     /* by Value*: the Node that stated its type */
    bool ok;
} Taker;

typedef struct Statement {
    Node *node;
    const StrPair *pair;
    bool result;
    size_t index;
} Statement;

static bool wrong(Taker *t, const Statement *s, const char *why) {
    t->ok = diag_error(t->d, s->node->loc, "%s: %s \"%s\": %s", node_text(s->node),
                       diag_name(t->d, s->pair->key), diag_name(t->d, s->pair->value), why);
    return false;
}

/* ---- what is stated ---- */

/* One line of a name for all values that have it. NULL after an error. */
static const Quant *line_of(Taker *t, const Statement *s, Quant *q) {
    q->loc = s->node->loc;
    if (!q->alias.n)
        return q;
    const Quant *known = map_get(t->lines, q->alias);
    if (known && !quant_equal(known, q)) {
        wrong(t, s, "another type has this name");
        diag_note(t->d, known->loc, "it stands here");
        return NULL;
    }
    if (known)
        return known;
    map_set(t->lines, q->alias, q);
    module_add_quant(t->m, q);
    return q;
}

/* What is no quantized type is told in the words of a text's reader. */
static void tell_why(Taker *t, const Statement *s) {
    Arena *a = t->m->arena;
    Str text = s->pair->value;
    const char *source =
        arena_strf(a, "%s of %s", diag_name(t->d, s->pair->key), node_text(s->node)).s;
    Str file = arena_strf(a, "qir 1\nquant %s" STR_FMT "\ngraph () -> () {\n}\n",
                          str_starts(text, "!") ? "" : "!q = ", STR_ARG(text));
    QirReadOptions options = {.wide_zp = t->m->wide_zp};
    if ((text.n && memchr(text.s, '\n', text.n)) ||
        qir_read_text(a, t->d, source, file, &options)) {
        wrong(t, s, "this is no quantized type, as int8q<0.1, 3> is, or !name = int8q<0.1, 3>");
        return;
    }
    t->ok = false;
    diag_note(t->d, s->node->loc, "stated by %s", node_text(s->node));
}

/* "range=-7:7" */
static bool read_range(Str text, int64_t *lo, int64_t *hi) {
    enum { MOST = 64 };
    char copy[MOST], *end;
    static const char word[] = "range=";
    if (!str_starts(text, word) || text.n >= MOST || memchr(text.s, 0, text.n))
        return false;
    memcpy(copy, text.s, text.n);
    copy[text.n] = 0;
    *lo = strtoll(copy + strlen(word), &end, 10);
    if (end == copy + strlen(word) || *end != ':')
        return false;
    char *behind = end + 1;
    *hi = strtoll(behind, &end, 10);
    return end != behind && !*end;
}

/* The type that an annotation gave, of fewer integers. */
static const Quant *with_range(Taker *t, const Statement *s, const Value *v, int64_t lo,
                               int64_t hi) {
    const Quant *whole = v->type.quant;
    if (!whole || !whole->storage || !quant_is_integers(whole)) {
        wrong(t, s, "no annotation says the rest of the type");
        return NULL;
    }
    Ranged *first = map_get_at(t->ranged, whole);
    for (const Ranged *r = first; r; r = r->next)
        if (r->q->lo == lo && r->q->hi == hi)
            return r->q;
    Quant *q = quant_copy(t->m->arena, whole);
    q->has_range = true;
    q->lo = lo;
    q->hi = hi;
    q->loc = s->node->loc;
    Ranged *made = NEW(t->m->arena, Ranged);
    *made = (Ranged){q, first};
    map_set_at(t->ranged, whole, made);
    return q;
}

static void count_use(Value *v, void *ctx) {
    if (v->type.quant)
        map_set_at(ctx, v->type.quant, v);
}

/* Lines that only values with a range had are theirs now. */
static void hand_lines_on(Taker *t) {
    Map *used = map_new(t->m->arena);
    module_each_value(t->m, count_use, used);
    for (size_t i = 0; i < t->m->n_quants; i++) {
        const Quant *whole = t->m->quants[i];
        const Ranged *r = map_get_at(t->ranged, whole);
        if (!r || map_get_at(used, whole))
            continue;
        r->q->alias = whole->alias;
        t->m->quants[i] = r->q;
    }
}

static const Quant *quant_stated(Taker *t, const Statement *s, const Value *v) {
    int64_t lo, hi;
    if (str_is(s->pair->value, "?"))
        return quant_open(t->m->arena, ELEM_UNDEFINED);
    if (read_range(s->pair->value, &lo, &hi))
        return with_range(t, s, v, lo, hi);
    Quant *q = qir_part_quant(t->parts, s->pair->value);
    if (q)
        return line_of(t, s, q);
    tell_why(t, s);
    return NULL;
}

/* ---- of what ---- */

/* NULL after an error, or a warning where it stays metadata. */
static Value *value_of(Taker *t, const Statement *s) {
    const Node *n = s->node;
    size_t count = s->result ? n->n_out : n->n_in;
    Value *v = s->index < count ? (s->result ? n->out : n->in)[s->index] : NULL;
    if (!v)
        wrong(t, s, s->result ? "the node has no such result" : "the node has no such operand");
    else if (v->type.kind == TYPE_NONE)
        diag_warning(t->d, n->loc, "%s: %s stays metadata: the type of \"%s\" is not known",
                     node_text(n), diag_name(t->d, s->pair->key), diag_name(t->d, v->name));
    else if (v->type.kind != TYPE_TENSOR || type_is_quantized(v->type) ||
             !(elem_is_float(v->type.elem) || elem_is_int(v->type.elem)))
        wrong(t, s, "only tensors of floats, or of the integers themselves, can have this type");
    else
        return v;
    return NULL;
}

/* What an annotation, a text or another node says of it has to be the same. */
static bool contradicts(Taker *t, const Statement *s, const Value *v, const Quant *q) {
    const Quant *old = v->type.quant;
    const Node *by = map_get_at(t->by, v);
    bool adds =
        !by && old && q->has_range && !old->has_range && str_starts(s->pair->value, "range=");
    if (!old || adds || quant_equal(old, q))
        return false;
    Buf said = buf_new(t->m->arena);
    quant_print(&said, old);
    wrong(t, s,
          node_strf(s->node, "\"%s\" is %s", diag_name(t->d, v->name),
                    diag_name(t->d, buf_as_str(&said))));
    diag_note(t->d, by ? by->loc : v->loc, "%s", by ? node_text(by) : "as stands here");
    return true;
}

/* Whether the statement became a type. */
static bool take(Taker *t, const Statement *s) {
    Value *v = value_of(t, s);
    const Quant *q = v ? quant_stated(t, s, v) : NULL;
    if (!q || contradicts(t, s, v, q))
        return false;
    if (elem_is_int(v->type.elem) && v->type.elem != q->storage)
        return wrong(t, s, "the value's own integers have another type");
    if (!map_get_at(t->by, v))
        v->type = type_tilde(v->type, q);
    map_set_at(t->by, v, s->node);
    return true;
}

static void take_graph(Graph *g, void *ctx) {
    Taker *t = ctx;
    if (graph_function(g))
        return; /* as of rules: what is called stands where it is called by now */
    FOR_NODES(n, g) {
        StrPair *items = n->meta.n ? NEW_ARRAY(t->m->arena, StrPair, n->meta.n) : NULL;
        size_t kept = 0;
        for (size_t i = 0; i < n->meta.n; i++) {
            Statement s = {.node = n, .pair = &n->meta.items[i]};
            if (!stated_key(s.pair->key, &s.result, &s.index) || !take(t, &s))
                items[kept++] = n->meta.items[i];
        }
        if (kept < n->meta.n)
            n->meta = (Meta){items, kept};
    }
}

bool stated_take(Module *m, Diags *d) {
    Arena *a = m->arena;
    Taker t = {.m = m,
               .d = d,
               .parts = qir_parts_new(a, NULL, m->wide_zp),
               .lines = map_new(a),
               .ranged = map_new(a),
               .by = map_new(a),
               .ok = true};
    for (size_t i = 0; i < m->n_quants; i++)
        map_set(t.lines, m->quants[i]->alias, m->quants[i]);
    module_each_graph(m, take_graph, &t);
    hand_lines_on(&t);
    return t.ok && module_check(m, VERIFY_ERRORS, d);
}

static void look(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->meta.n; i++) {
        bool result;
        size_t index;
        *(bool *)ctx |= stated_key(n->meta.items[i].key, &result, &index);
    }
}

bool module_has_stated(Module *m) {
    bool found = false;
    module_each_graph(m, look, &found);
    return found;
}
