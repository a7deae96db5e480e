#include "compiler/scheme_nodes.h"
#include "frontend/qir/qir_read.h"

typedef struct NodeRules {
    Module *m;
    Diags *d;
    Scheme *out;
    bool ok;
} NodeRules;

/* ---- attributes that are metadata ---- */

static bool is_ours(const Attr *a) {
    return str_starts(a->name, META_QUANTIZATION) && attr_holds(a, ATTR_STRING);
}

static void move_attrs(NodeRules *r, Node *n) {
    size_t kept = 0, moved = 0;
    for (size_t i = 0; i < n->n_attrs; i++)
        moved += is_ours(&n->attrs[i]);
    if (!moved)
        return;
    StrPair *items = NEW_ARRAY(r->m->arena, StrPair, n->meta.n + moved);
    Meta meta = {items, n->meta.n};
    if (n->meta.n)
        memcpy(items, n->meta.items, n->meta.n * sizeof *items);
    for (size_t i = 0; i < n->n_attrs; i++)
        if (is_ours(&n->attrs[i]))
            items[meta.n++] = (StrPair){.key = n->attrs[i].name, .value = n->attrs[i].v.s[0]};
        else
            n->attrs[kept++] = n->attrs[i];
    n->n_attrs = kept;
    n->meta = meta;
}

/* ---- rules ---- */

static bool wrong(const NodeRules *r, const Node *n, const StrPair *p, const char *why) {
    return diag_error(r->d, n->loc, "%s: %s \"%s\": %s", node_text(n), diag_name(r->d, p->key),
                      diag_name(r->d, p->value), why);
}

/* The value is what follows the key in a line of a scheme, and no more. */
static bool read_line(NodeRules *r, const Node *n, const StrPair *p, Str role) {
    Arena *a = r->m->arena;
    Scheme line = {0};
    Str text =
        arena_strf(a, "scheme { " STR_FMT " " STR_FMT " }", STR_ARG(role), STR_ARG(p->value));
    const char *source = arena_strf(a, "%s of %s", diag_name(r->d, p->key), node_text(n)).s;
    if (!qir_read_scheme_text(a, r->d, source, text, &line)) {
        diag_note(r->d, n->loc, "stated by %s", node_text(n));
        return false;
    }
    if (line.n != 1 || line.rules[0].of != SCHEME_ALL || line.recipe.s || line.calibrate.s)
        return wrong(r, n, p, "one property of this node is wanted, and no other rules");
    line.rules[0].of = SCHEME_NODE;
    line.rules[0].pattern = arena_str(a, n->name).s;
    line.rules[0].loc = n->loc;
    scheme_add(r->out, a, line.rules[0]);
    return true;
}

static bool read_keep(NodeRules *r, const Node *n, const StrPair *p) {
    if (!str_is(p->value, "float"))
        return wrong(r, n, p, "a node can only keep float");
    SchemeRule rule = scheme_rule(SCHEME_NODE, arena_str(r->m->arena, n->name).s, n->loc);
    rule.keep = 1;
    scheme_add(r->out, r->m->arena, rule);
    return true;
}

static bool read_pair(NodeRules *r, const Node *n, const StrPair *p) {
    static const char *const words[] = {
#define ROLE(id, word, begins) word,
#include "ir/scheme_words.def"
        "keep", /* the last */
    };
    enum { N_WORDS = sizeof words / sizeof *words };
    size_t skip = strlen(META_QUANTIZATION);
    Str word = {p->key.s + skip, p->key.n - skip};
    for (size_t i = 0; i < N_WORDS; i++) {
        if (!str_is(word, words[i]))
            continue;
        if (!n->name.n)
            return wrong(r, n, p, "only a node with a name can state its quantization");
        return i == N_WORDS - 1 ? read_keep(r, n, p) : read_line(r, n, p, word);
    }
    diag_warning(r->d, n->loc, "%s: qxc does not know \"%s\"; it stays metadata", node_text(n),
                 diag_name(r->d, p->key));
    diag_did_you_mean(r->d, n->loc, word, words, N_WORDS);
    return true;
}

static bool graph_in_function(const Graph *g) {
    while (g->owner)
        g = g->owner->graph;
    return g->function != NULL;
}

static void read_graph(Graph *g, void *ctx) {
    NodeRules *r = ctx;
    if (graph_in_function(g))
        return; /* its nodes get their names where they are called */
    FOR_NODES(n, g) {
        move_attrs(r, n);
        for (size_t i = 0; i < n->meta.n; i++)
            if (str_starts(n->meta.items[i].key, META_QUANTIZATION))
                r->ok = read_pair(r, n, &n->meta.items[i]) && r->ok;
    }
}

bool scheme_of_nodes(Scheme *s, Module *m, Diags *d) {
    NodeRules r = {m, d, s, true};
    module_each_graph(m, read_graph, &r);
    return r.ok;
}
