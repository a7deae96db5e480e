/* Lowering: nodes and initializers take back their places. See lower_spelling.h. */
#include <stdlib.h>

#include "passes/edit.h"
#include "passes/lower/lower_spelling.h"

/* Nodes that say their place stand there; the others, in order, where there is room. */
static size_t place_nodes(const Lower *l, const Graph *g, Node **out, size_t count) {
    const Spelled *s = l->spelled;
    size_t free = 0, said_places = 0;
    memset(out, 0, count * sizeof *out);
    FOR_NODES(n, g) {
        size_t at = n->id < s->n_at ? s->at[n->id] : 0;
        if (at && at <= count && !out[at - 1]) {
            out[at - 1] = n;
            said_places++;
        } else if (at) {
            s->at[n->id] = 0;
        }
    }
    FOR_NODES(n, g) {
        if (n->id < s->n_at && s->at[n->id])
            continue;
        while (out[free])
            free++;
        out[free] = n;
    }
    return said_places;
}

typedef struct Order {
    Map *seen; /* values of this graph that stand before */
    const Graph *g;
    bool ok;
} Order;

static void check_operands(Order *o, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        if (x && x->kind == VALUE_NODE && x->graph == o->g && !map_get(o->seen, value_key(x)))
            o->ok = false;
    }
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++) {
            const Graph *body = n->attrs[i].v.g[k];
            FOR_NODES(inner, body)
            check_operands(o, inner);
            for (size_t j = 0; j < body->n_out; j++) {
                const Value *x = body->out[j];
                if (x && x->kind == VALUE_NODE && x->graph == o->g &&
                    !map_get(o->seen, value_key(x)))
                    o->ok = false;
            }
        }
}

static void order_nodes(Lower *l, Graph *g) {
    size_t count = 0;
    FOR_NODES(n, g)
    count++;
    Node **nodes = NEW_ARRAY(l->b.m->scratch, Node *, count + 1);
    if (!place_nodes(l, g, nodes, count))
        return;
    Order o = {map_new(l->b.m->scratch), g, true};
    for (size_t i = 0; i < count && o.ok; i++) {
        check_operands(&o, nodes[i]);
        for (size_t k = 0; k < nodes[i]->n_out; k++)
            if (nodes[i]->out[k])
                map_set(o.seen, value_key(nodes[i]->out[k]), nodes[i]);
    }
    if (!o.ok)
        return; /* the graph was edited: what lowering made stands */
    g->first = g->last = NULL;
    for (size_t i = 0; i < count; i++) {
        nodes[i]->prev = nodes[i]->next = NULL;
        graph_append(g, nodes[i]);
    }
}

typedef struct Ranked {
    Value *v;
    size_t rank;
} Ranked;

static int by_rank(const void *x, const void *y) {
    size_t a = ((const Ranked *)x)->rank, b = ((const Ranked *)y)->rank;
    return (a > b) - (a < b);
}

static void order_constants(Lower *l, Graph *g) {
    if (!g->initializers)
        return;
    Map *rank = map_new(l->b.m->scratch);
    size_t *places = NEW_ARRAY(l->b.m->scratch, size_t, g->n_initializers + 1);
    for (size_t i = 0; i < g->n_initializers; i++) {
        places[i] = i;
        map_set(rank, g->initializers[i], &places[i]);
    }
    Ranked *r = NEW_ARRAY(l->b.m->scratch, Ranked, g->n_consts + 1);
    for (size_t i = 0; i < g->n_consts; i++) {
        const size_t *at = map_get(rank, g->consts[i]->name);
        r[i] = (Ranked){g->consts[i], at ? *at : g->n_initializers + i};
    }
    qsort(r, g->n_consts, sizeof *r, by_rank);
    for (size_t i = 0; i < g->n_consts; i++)
        g->consts[i] = r[i].v;
    g->initializers = NULL;
    g->n_initializers = 0;
}

static void order_graph(Graph *g, void *ctx) {
    order_nodes(ctx, g);
    order_constants(ctx, g);
}

void order_restore(Lower *l) {
    Arena *outer = scratch_begin(l->b.m);
    module_each_graph(l->b.m, order_graph, l);
    scratch_end(l->b.m, outer);
}
