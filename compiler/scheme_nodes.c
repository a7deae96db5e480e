#include "compiler/scheme_nodes.h"
#include "frontend/qir/qir_read.h"
#include "ir/ops/op.h"
#include "passes/stated.h"

typedef struct NodeRules {
    Module *m;
    Diags *d;
    Scheme *out;
    bool checks; /* alone: nothing is decided, and what is wrong is no error */
    bool ok;
} NodeRules;

/* ---- attributes that are metadata ---- */

static bool is_ours(const Attr *a) {
    return str_starts(a->name, META_QUANTIZATION) &&
           (attr_holds(a, ATTR_STRING) || attr_holds(a, ATTR_INT));
}

/* Metadata are texts: a flag of Aidge's is "1". */
static Str text_of(const Attr *a, Arena *arena) {
    return attr_holds(a, ATTR_STRING) ? a->v.s[0] : arena_strf(arena, "%lld", (long long)a->v.i[0]);
}

static void move_attr(NodeRules *r, Node *n, const Attr *a) {
    Str text = text_of(a, r->m->arena), other = node_meta(n, a->name);
    if (other.s && !str_eq(other, text))
        r->ok = diag_error(r->d, n->loc, "%s: %s is \"%s\" as an attribute, \"%s\" as metadata",
                           node_text(n), diag_name(r->d, a->name), diag_name(r->d, text),
                           diag_name(r->d, other));
    meta_set(r->m->arena, &n->meta, a->name, text);
}

static void move_attrs(NodeRules *r, Node *n) {
    size_t kept = 0;
    for (size_t i = 0; i < n->n_attrs; i++)
        if (is_ours(&n->attrs[i]))
            move_attr(r, n, &n->attrs[i]);
        else
            n->attrs[kept++] = n->attrs[i];
    n->n_attrs = kept;
}

/* ---- rules ---- */

static bool wrong(const NodeRules *r, const Node *n, const StrPair *p, const char *why) {
    diag(r->d, r->checks ? DIAG_WARNING : DIAG_ERROR, n->loc, "%s: %s \"%s\": %s", node_text(n),
         diag_name(r->d, p->key), diag_name(r->d, p->value), why);
    return false;
}

static const char *said_as(const NodeRules *r, const Node *n, const StrPair *p) {
    return arena_strf(r->m->arena, "meta <\"%s\"=\"%s\"> of %s", diag_name(r->d, p->key),
                      diag_name(r->d, p->value), node_text(n))
        .s;
}

/* `setting` is what follows the role in a line of a scheme, and no more. */
static bool read_line(NodeRules *r, const Node *n, const StrPair *p, SchemeRole role, Str setting) {
    Arena *a = r->m->arena;
    Scheme line = {0};
    bool of_node = role == SCHEME_IN || role == SCHEME_OUT; /* said of nodes alone */
    Str text = arena_strf(a, "scheme { %s%s " STR_FMT " }", of_node ? "node \"*\" " : "",
                          scheme_role_name(role), STR_ARG(setting));
    const char *source = arena_strf(a, "%s of %s", diag_name(r->d, p->key), node_text(n)).s;
    Diags *d = r->checks ? diags_new(a, NULL, false) : r->d;
    if (!qir_read_scheme_text(a, d, source, text, &line)) {
        diag_note(d, n->loc, "stated by %s", node_text(n));
        return r->checks && wrong(r, n, p, "no rule says this");
    }
    if (!scheme_is_of_role(&line, role) || line.rules[0].of != (of_node ? SCHEME_NODE : SCHEME_ALL))
        return wrong(r, n, p, "one property of this node is wanted, and no other rules");
    line.rules[0].of = SCHEME_NODE;
    line.rules[0].pattern = scheme_glob_of(a, n->name).s;
    line.rules[0].loc = n->loc;
    line.rules[0].said_as = said_as(r, n, p);
    scheme_add(r->out, a, line.rules[0]);
    return true;
}

static bool read_keep(NodeRules *r, const Node *n, const StrPair *p) {
    if (!str_is(p->value, "float"))
        return wrong(r, n, p, "a node can only keep float");
    SchemeRule rule = scheme_rule(SCHEME_NODE, scheme_glob_of(r->m->arena, n->name).s, n->loc);
    rule.keep = 1;
    rule.said_as = said_as(r, n, p);
    scheme_add(r->out, r->m->arena, rule);
    return true;
}

/* ---- what Aidge says of a node: quantization.ptq.* ---- */

/* Its quantization is symmetric; fewer bits than 8 are carried in int8. A product's precision is
 * that of its weights, too. */
static bool read_precision(NodeRules *r, const Node *n, const StrPair *p) {
    bool few = str_is(p->value, "int4") || str_is(p->value, "int2");
    Str weights = arena_strf(r->m->arena, STR_FMT " sym", STR_ARG(p->value)), out = weights;
    if (few)
        out = arena_strf(r->m->arena, STR_FMT "q in int8q sym", STR_ARG(p->value));
    bool product = n->def && n->def->quant.kind == QUANT_MAC;
    return read_line(r, n, p, SCHEME_OUT, out) &&
           (!product || read_line(r, n, p, SCHEME_WEIGHTS, weights));
}

static bool read_aidge(NodeRules *r, const Node *n, const StrPair *p, Str word) {
    if (str_is(word, "precision"))
        return read_precision(r, n, p);
    if (str_is(word, "notquantized"))
        return str_is(p->value, "0") || read_keep(r, n, &(StrPair){p->key, STR("float")});
    if (str_is(word, "accumulationprecision") && str_is(p->value, "int32"))
        return true; /* as it is anyway */
    if (r->checks)
        return true;
    diag_warning(r->d, n->loc, "%s: %s \"%s\" is not taken over; it stays metadata", node_text(n),
                 diag_name(r->d, p->key), diag_name(r->d, p->value));
    return true;
}

static bool read_pair(NodeRules *r, const Node *n, const StrPair *p) {
    static const char *const words[] = {
#define ROLE(id, word, begins) word,
#include "ir/scheme_words.def"
        "keep", /* the last */
    };
    enum { N_WORDS = sizeof words / sizeof *words };
    size_t skip = strlen(META_QUANTIZATION), index;
    bool result;
    if (stated_key(p->key, &result, &index))
        return true; /* decided: no rule, but a type (compiler/stated.h) */
    Str word = {p->key.s + skip, p->key.n - skip};
    for (size_t i = 0; i < N_WORDS; i++) {
        if (!str_is(word, words[i]))
            continue;
        if (!n->name.n)
            return wrong(r, n, p, "only a node with a name can state its quantization");
        return i == N_WORDS - 1 ? read_keep(r, n, p) : read_line(r, n, p, (SchemeRole)i, p->value);
    }
    if (str_starts(word, "ptq.")) {
        if (!n->name.n)
            return wrong(r, n, p, "only a node with a name can state its quantization");
        return read_aidge(r, n, p, (Str){word.s + 4, word.n - 4});
    }
    diag_warning(r->d, n->loc, "%s: qxc does not know \"%s\"; it stays metadata", node_text(n),
                 diag_name(r->d, p->key));
    diag_did_you_mean(r->d, n->loc, word, words, N_WORDS);
    return true;
}

static void check_attrs(NodeRules *r, const Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        if (is_ours(a))
            read_pair(r, n, &(StrPair){.key = a->name, .value = text_of(a, r->m->arena)});
    }
}

static void read_graph(Graph *g, void *ctx) {
    NodeRules *r = ctx;
    if (graph_function(g))
        return; /* its nodes get their names where they are called */
    FOR_NODES(n, g) {
        if (r->checks)
            check_attrs(r, n);
        else
            move_attrs(r, n);
        for (size_t i = 0; i < n->meta.n; i++)
            if (str_starts(n->meta.items[i].key, META_QUANTIZATION))
                r->ok = read_pair(r, n, &n->meta.items[i]) && r->ok;
    }
}

void scheme_keep_node(Node *n) {
    Str key = STR(META_QUANTIZATION "keep");
    if (!n->name.n && n->n_out && n->out[0])
        n->name = n->out[0]->name; /* only a node with a name can state this */
    if (n->name.n && !node_meta(n, key).s)
        meta_set(n->graph->module->arena, &n->meta, key, STR("float"));
}

bool scheme_of_nodes(Scheme *s, Module *m, Diags *d) {
    NodeRules r = {m, d, s, false, true};
    module_each_graph(m, read_graph, &r);
    return r.ok;
}

void scheme_check_nodes(Module *m, Diags *d) {
    Scheme none = {0};
    module_each_graph(m, read_graph, &(NodeRules){m, d, &none, true, true});
}
