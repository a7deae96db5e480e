/* Values and layers of a report: conversions become part of values, and nodes that a pass made of
 * one node become one layer. */
#include "compiler/report_parts.h"

#include <math.h>

static bool is_conversion(const Node *n) {
    bool converts = node_conversion(n) != CONVERT_NONE || node_is(n, "DynamicQuantizeLinear");
    return converts && n->n_in && n->in[0] && n->n_out;
}

/* What a conversion hands on, scales and zero points that it makes along with it included. */
static const Value *root_of(const Value *v) {
    while (v->kind == VALUE_NODE && is_conversion(v->def))
        v = v->def->in[0];
    return v;
}

/* Whether it is one: scales and zero points that a conversion makes along are none. */
static bool add_name(Report *r, ReportValue *x, const Value *v) {
    bool is_main = v->kind != VALUE_NODE || v == v->def->out[0] || v == x->root;
    if (is_main) {
        ARENA_PUSH(r->a, x->names, x->n_names, x->cap_names, v->name);
        if (!map_get(r->by_name, v->name))
            map_set(r->by_name, v->name, x);
    }
    if (is_main && !x->quant)
        x->quant = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    return is_main;
}

static void add_value(Value *v, void *ctx) {
    Report *r = ctx;
    if (v->id >= r->n_ids)
        return;
    const Value *root = root_of(v);
    ReportValue *x = r->value_of[root->id];
    if (!x) {
        x = NEW(r->a, ReportValue);
        *x = (ReportValue){.root = root, .maker = -1, .number = -1, .sqnr = NAN};
        x->is_input = root->kind == VALUE_INPUT;
        x->is_const = root->kind == VALUE_CONST;
        r->value_of[root->id] = x;
        ARENA_PUSH(r->a, r->values, r->n_values, r->cap_values, x);
    }
    r->value_of[v->id] = x;
    if (add_name(r, x, v) && !x->is_output && uses_is_output(r->uses, v)) {
        x->is_output = true;
        x->own_name = x->n_names - 1;
    }
}

/* ---- layers ---- */

/* Nodes that passes made of one node, by its name in its part of the model; STR_NONE of others. */
static Str group_key(const Report *r, const Node *n) {
    const Provenance *p = &n->from;
    if (!p->n || !p->from[0].op.n || !p->from[0].name.n)
        return STR_NONE;
    return arena_strf(r->a, STR_FMT "\n" STR_FMT "\n" STR_FMT, STR_ARG(p->from[0].op),
                      STR_ARG(p->from[0].name), STR_ARG(p->in));
}

/* The node that multiplies, else the first. */
static bool is_better_head(const Node *n, const Node *head) {
    return n->def && n->def->quant.kind == QUANT_MAC &&
           !(head->def && head->def->quant.kind == QUANT_MAC);
}

static void name_layer(Report *r, const Node *n, ReportLayer *l) {
    if (n->name.n && !map_get(r->by_node, n->name))
        map_set(r->by_node, n->name, l);
    for (size_t i = 0; i < n->from.n; i++)
        if (n->from.from[i].name.n && !map_get(r->by_node, n->from.from[i].name))
            map_set(r->by_node, n->from.from[i].name, l);
}

typedef struct Grouping {
    Report *r;
    Map *groups; /* key -> layer */
} Grouping;

static void add_node(Grouping *g, const Node *n) {
    Report *r = g->r;
    Str key = group_key(r, n);
    ReportLayer *l = key.n ? map_get(g->groups, key) : NULL;
    if (!l) {
        l = NEW(r->a, ReportLayer);
        *l = (ReportLayer){.head = n};
        ARENA_PUSH(r->a, r->layers, r->n_layers, r->cap_layers, l);
        if (key.n)
            map_set(g->groups, key, l);
    }
    if (is_better_head(n, l->head))
        l->head = n;
    ARENA_PUSH(r->a, l->nodes, l->n, l->cap, n);
    name_layer(r, n, l);
}

static void add_nodes(Graph *graph, void *ctx) {
    FOR_NODES(n, graph)
    if (!is_conversion(n))
        add_node(ctx, n);
}

/* ---- who makes and reads what ---- */

static void add_reader(Report *r, const Value *v, int layer) {
    ReportValue *x = v && v->id < r->n_ids ? r->value_of[v->id] : NULL;
    if (!x)
        return;
    for (size_t i = 0; i < x->n_readers; i++)
        if (x->readers[i] == layer)
            return;
    ARENA_PUSH(r->a, x->readers, x->n_readers, x->cap_readers, layer);
}

static void connect(Report *r, int number) {
    const ReportLayer *l = r->layers[number];
    for (size_t i = 0; i < l->n; i++) {
        r->layer_of[l->nodes[i]->id] = number;
        for (size_t k = 0; k < l->nodes[i]->n_in; k++)
            add_reader(r, l->nodes[i]->in[k], number);
        for (size_t k = 0; k < l->nodes[i]->n_out; k++)
            if (l->nodes[i]->out[k])
                r->value_of[l->nodes[i]->out[k]->id]->maker = number;
    }
}

/* Conversions stand behind who makes the value, or before who reads what comes from outside. */
static void count_conversions(Graph *g, void *ctx) {
    Report *r = ctx;
    FOR_NODES(n, g) {
        const ReportValue *x = is_conversion(n) ? r->value_of[n->out[0]->id] : NULL;
        if (!x)
            continue;
        int at = x->maker >= 0 ? x->maker : x->n_readers ? x->readers[0] : -1;
        if (at >= 0)
            r->layers[at]->conversions++;
    }
}

/* What a layer's nodes alone hand to each other is no value of the model. */
static bool is_shown(const ReportValue *x) {
    if (x->is_const || x->root->type.kind == TYPE_NONE)
        return false;
    if (x->is_input || x->is_output)
        return true;
    for (size_t i = 0; i < x->n_readers; i++)
        if (x->readers[i] != x->maker)
            return x->maker >= 0;
    return x->maker >= 0 && !x->n_readers;
}

void report_find_layers(Report *r) {
    Grouping g = {r, map_new(r->a)};
    r->n_ids = r->m->n_values;
    r->value_of = NEW_ARRAY(r->a, ReportValue *, r->n_ids);
    r->layer_of = NEW_ARRAY(r->a, int, r->m->n_nodes);
    r->by_name = map_new(r->a);
    r->by_node = map_new(r->a);
    for (uint32_t i = 0; i < r->m->n_nodes; i++)
        r->layer_of[i] = -1;
    module_each_value(r->m, add_value, r);
    module_each_graph(r->m, add_nodes, &g);
    for (size_t i = 0; i < r->n_layers; i++)
        connect(r, (int)i);
    module_each_graph(r->m, count_conversions, r);
    int number = 0;
    for (size_t i = 0; i < r->n_values; i++)
        if (is_shown(r->values[i]))
            r->values[i]->number = number++;
}

int report_layer_of(const Report *r, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        const ReportValue *x = n->out[i] ? map_get(r->by_name, n->out[i]->name) : NULL;
        if (x && x->maker >= 0)
            return x->maker;
    }
    const ReportLayer *l = n->name.n ? map_get(r->by_node, n->name) : NULL;
    for (size_t i = 0; !l && i < n->from.n; i++)
        l = n->from.from[i].name.n ? map_get(r->by_node, n->from.from[i].name) : NULL;
    return l ? r->layer_of[l->head->id] : -1;
}
