/* See compiler/mixed_layers.h. */
#include "compiler/mixed_layers.h"

#include "passes/quantize/sharing.h"
#include "passes/quantize/rules.h"

typedef struct Found {
    Arena *a;
    Spared most;
    Layer *layers;
    size_t n, cap;
} Found;

static SchemeSetting *add_rule(Arena *a, Layer *l, SchemeSubject of, Str name, SchemeRole role) {
    SchemeRule r = scheme_rule(of, scheme_glob_of(a, name).s, LOC_NONE);
    ARENA_PUSH(a, l->rules, l->n_rules, l->cap_rules, r);
    SchemeSetting *s = &l->rules[l->n_rules - 1].set[role];
    s->said = true;
    return s;
}

static void widen_value(Arena *a, Layer *l, const Value *v) {
    add_rule(a, l, SCHEME_VALUE, v->name, SCHEME_ITSELF)->storage = ELEM_INT16;
}

/* 16 bits for what is made, and for what has its parameters: behind a Reshape or a Relu. */
static void widen(Arena *a, Layer *l, const Value *v, const Uses *uses) {
    const Use *use;
    size_t n = uses_of(uses, v, &use);
    widen_value(a, l, v);
    for (size_t i = 0; i < n; i++) {
        const Node *user = use[i].node;
        const Value *y = user && user->n_out ? user->out[0] : NULL;
        if (y && user->in[0] == v && user->def && is_follower(user) && y->type.quant &&
            quant_equal(y->type.quant, v->type.quant))
            widen(a, l, y, uses);
    }
}

/* Constants that stand beside data: one scale for means of columns of very different sizes loses
 * the small. */
static void widen_constants(Arena *a, Layer *l, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->kind == VALUE_CONST && n->in[i]->type.quant &&
            n->def->quant.kind != QUANT_MAC && quant_rule_is_data(&n->def->quant, i))
            widen_value(a, l, n->in[i]);
}

/* The sums of a product may leave as floats. */
static bool multiplies_integers(const Node *n) {
    const Value *x = node_input(n, 0), *w = node_input(n, (size_t)n->def->quant.mac.weight);
    return x && x->type.quant && w && w->type.quant;
}

bool layer_is(const Node *n) {
    if (!n->def || !n->n_out || !n->out[0])
        return false;
    QuantClass k = n->def->quant.kind;
    bool rounds = n->out[0]->type.quant || (k == QUANT_MAC && multiplies_integers(n));
    return rounds && (k == QUANT_MAC || k == QUANT_COMPUTE || k == QUANT_JOIN);
}

static void add_layer(Found *x, Layer l, Spared how, Str name) {
    l.how = how;
    l.at = x->n;
    l.name = arena_str(x->a, name);
    ARENA_PUSH(x->a, x->layers, x->n, x->cap, l);
}

static void add_float(Found *x, const Node *n) {
    Layer l = {0};
    add_rule(x->a, &l, SCHEME_NODE, rule_name(n), SCHEME_WEIGHTS)->said = false;
    l.rules[0].keep = 1;
    add_layer(x, l, SPARED_FLOAT, rule_name(n));
}

/* Weights of up to 8 bits. */
static bool has_small_weights(const Node *n) {
    const Value *w =
        n->def->quant.kind == QUANT_MAC ? node_input(n, (size_t)n->def->quant.mac.weight) : NULL;
    return w && w->kind == VALUE_CONST && w->type.quant && elem_bits(w->type.quant->storage) <= 8;
}

static void add_weights(Found *x, const Node *n) {
    Layer l = {0};
    add_rule(x->a, &l, SCHEME_NODE, rule_name(n), SCHEME_WEIGHTS)->storage = ELEM_INT16;
    add_layer(x, l, SPARED_WEIGHTS, rule_name(n));
}

/* What computes on integers; data movers follow it. The module has its decisions (float ~ q). */
static void find_layers(Graph *g, void *ctx) {
    Found *x = ctx;
    const Uses *uses = uses_new(g->module);
    for (size_t i = 0; x->most >= SPARED_WIDE && i < g->n_in; i++) {
        Layer l = {0};
        if (!g->in[i]->type.quant)
            continue;
        widen(x->a, &l, g->in[i], uses);
        add_layer(x, l, SPARED_WIDE, g->in[i]->name);
    }
    FOR_NODES(n, g) {
        Layer l = {0};
        if (!layer_is(n))
            continue;
        if (x->most == SPARED_FLOAT) {
            add_float(x, n);
            continue;
        }
        widen(x->a, &l, n->out[0], uses);
        widen_constants(x->a, &l, n);
        add_layer(x, l, SPARED_WIDE, rule_name(n));
        if (x->most == SPARED_WEIGHTS && has_small_weights(n))
            add_weights(x, n);
    }
}

Layer *mixed_layers(Module *m, Arena *a, Spared most, size_t *n) {
    Found f = {.a = a, .most = most};
    module_each_graph(m, find_layers, &f);
    *n = f.n;
    return f.layers;
}
