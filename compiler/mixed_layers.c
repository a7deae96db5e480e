/* See compiler/mixed_layers.h. */
#include "compiler/mixed_layers.h"

typedef struct Found {
    Arena *a;
    bool wide;
    Layer *layers;
    size_t n, cap;
} Found;

/* 16 bits for what is made. */
static SchemeRule wide_rule(Arena *a, const Value *v) {
    SchemeRule r = scheme_rule(SCHEME_VALUE, scheme_glob_of(a, v->name).s, LOC_NONE);
    SchemeSetting *s = &r.set[SCHEME_ITSELF];
    s->said = true;
    s->storage = ELEM_INT16;
    return r;
}

/* The values that a layer makes and a clamp behind it takes over get 16 bits, and so do constants
 * that stand beside data: one scale for means of columns of very different sizes loses the small.
 */
static void widen(Arena *a, const Node *n, Layer *l, const Uses *uses) {
    const Value *v = n->out[0];
    l->rules[l->n_rules++] = wide_rule(a, v);
    for (size_t i = 0; i < n->n_in && l->n_rules < LAYER_RULES - 1; i++)
        if (n->in[i] && n->in[i]->kind == VALUE_CONST && n->in[i]->type.quant &&
            n->def->quant.kind != QUANT_MAC && quant_rule_is_data(&n->def->quant, i))
            l->rules[l->n_rules++] = wide_rule(a, n->in[i]);
    const Node *user = uses_only_node(uses, v);
    if (user && user->def && user->def->quant.kind == QUANT_CLAMP && user->out[0])
        l->rules[l->n_rules++] = wide_rule(a, user->out[0]);
}

Str layer_name(const Node *n) {
    return n->name.n ? n->name : n->out[0]->name;
}

bool layer_is(const Node *n) {
    if (!n->def || !n->n_out || !n->out[0] || !n->out[0]->type.quant)
        return false;
    QuantClass k = n->def->quant.kind;
    return k == QUANT_MAC || k == QUANT_COMPUTE || k == QUANT_JOIN;
}

static void keep_float(Arena *a, const Node *n, Layer *l) {
    l->rules[0] = scheme_rule(SCHEME_NODE, scheme_glob_of(a, layer_name(n)).s, LOC_NONE);
    l->rules[0].keep = 1;
    l->n_rules = 1;
}

static void add_layer(Found *x, Layer l, Str name) {
    l.at = x->n;
    l.name = arena_str(x->a, name);
    ARENA_PUSH(x->a, x->layers, x->n, x->cap, l);
}

/* What computes on integers; data movers follow it. The module has its decisions (float ~ q). */
static void find_layers(Graph *g, void *ctx) {
    Found *x = ctx;
    const Uses *uses = uses_new(g->module);
    bool wide = x->wide;
    for (size_t i = 0; wide && i < g->n_in; i++)
        if (g->in[i]->type.quant)
            add_layer(x, (Layer){.rules = {wide_rule(x->a, g->in[i])}, .n_rules = 1},
                      g->in[i]->name);
    FOR_NODES(n, g) {
        if (!layer_is(n))
            continue;
        Layer l = {0};
        if (wide)
            widen(x->a, n, &l, uses);
        else
            keep_float(x->a, n, &l);
        add_layer(x, l, layer_name(n));
    }
}

Layer *mixed_layers(Module *m, Arena *a, bool wide, size_t *n) {
    Found f = {.a = a, .wide = wide};
    module_each_graph(m, find_layers, &f);
    *n = f.n;
    return f.layers;
}
