/* What metadata say under keys of qxc's, and nobody would read: a key that there is not, one of
 * another kind of object, one that a text has other words for. */
#include "compiler/metadata.h"
#include "ir/bound.h"

typedef enum Holder { MODEL = 1, GRAPH = 2, FUNCTION = 4, NODE = 8, VALUE = 16 } Holder;

typedef struct Known {
    const char *key;
    unsigned of;
    const char *place;   /* in words */
    const char *in_text; /* how a text says it; NULL: as metadata, too */
} Known;

static const char PREFIX[] = "qxc.";
static const Known known[] = {
    {META_STAT, VALUE, "a value", "a line 'stat %x <...>'"},
    {META_FROM, VALUE | NODE, "a value or a node", "a clause 'from(...)'"},
    {META_SQNR, NODE, "a node", NULL},
    {META_BOUND, NODE, "a node", NULL},
    {META_EXTERNAL, MODEL, "the model", NULL},
};
enum { N_KNOWN = sizeof known / sizeof *known };

typedef struct Checker {
    Diags *d;
    bool is_text, ok;
} Checker;

static void tell_unknown(const Checker *c, Loc at, Str key) {
    const char *keys[N_KNOWN];
    for (size_t i = 0; i < N_KNOWN; i++)
        keys[i] = known[i].key;
    diag_warning(c->d, at, "metadata \"%s\": qxc has no such key, and nobody reads it",
                 diag_name(c->d, key));
    diag_did_you_mean(c->d, at, key, keys, N_KNOWN);
}

static void check_entry(const Checker *c, const StrPair *p, Holder of, Loc at) {
    const Known *k = known;
    if (!str_starts(p->key, PREFIX))
        return;
    while (k < known + N_KNOWN && !str_is(p->key, k->key))
        k++;
    if (k == known + N_KNOWN)
        tell_unknown(c, at, p->key);
    else if (!(k->of & of))
        diag_warning(c->d, at, "metadata \"%s\" are of %s: here nobody reads them", k->key,
                     k->place);
    else if (c->is_text && k->in_text && p->value.s)
        diag_warning(c->d, at,
                     "metadata \"%s\" are read from an ONNX file alone: a text says this in %s",
                     k->key, k->in_text);
}

static void check_meta(const Checker *c, Meta meta, Holder of, Loc at) {
    for (size_t i = 0; i < meta.n; i++)
        check_entry(c, &meta.items[i], of, at);
}

static void check_value(Value *v, void *ctx) {
    check_meta(ctx, v->meta, VALUE, v->loc);
}

static void check_graph(Graph *g, void *ctx) {
    Checker *c = ctx;
    int64_t most;
    check_meta(c, g->meta, GRAPH, g->loc);
    FOR_NODES(n, g) {
        check_meta(c, n->meta, NODE, n->loc);
        c->ok = node_bound(n, &most, c->d) && c->ok;
    }
}

bool metadata_check(Module *m, bool is_text, Diags *d) {
    Checker c = {d, is_text, true};
    check_meta(&c, m->meta, MODEL, m->graph ? m->graph->loc : LOC_NONE);
    for (size_t i = 0; i < m->n_functions; i++)
        check_meta(&c, m->functions[i]->meta, FUNCTION, m->functions[i]->loc);
    module_each_graph(m, check_graph, &c);
    module_each_value(m, check_value, &c);
    return c.ok;
}
