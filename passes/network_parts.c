/* See network.h: where a node stands in a network. */
#include "passes/network.h"

typedef struct Parts {
    bool *ahead; /* by value id: a layer reads what it leads to */
    bool *last, *tail;
    bool *behind;   /* by value id: a layer stands above */
    bool *computed; /* by value id: an input has a part in it */
    bool *alive;    /* by value id: an output has a part of it */
} Parts;

static bool leads_to_layer(const Parts *p, const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_out; i++)
        any = any || (n->out[i] && p->ahead[n->out[i]->id]);
    return any;
}

static bool is_alive(const Parts *p, const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_out; i++)
        any = any || (n->out[i] && p->alive[n->out[i]->id]);
    return any;
}

static bool stands_behind(const Parts *p, const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_in; i++)
        any = any || (n->in[i] && p->behind[n->in[i]->id]);
    return any;
}

/* A product by what no input has a part in, or a recurrent operator and the like. */
static bool is_layer(const Parts *p, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    const Value *w = r && r->kind == QUANT_MAC ? node_input(n, (size_t)r->mac.weight) : NULL;
    return (w && !p->computed[w->id]) || (n->def && n->def->family == FAMILY_SEQUENCE);
}

static void find_computed(const Parts *p, const Graph *g) {
    for (size_t i = 0; i < g->n_in; i++)
        p->computed[g->in[i]->id] = !g->in[i]->data;
    FOR_NODES(n, g) {
        bool any = has_bodies(n);
        for (size_t i = 0; i < n->n_in; i++)
            any = any || (n->in[i] && p->computed[n->in[i]->id]);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                p->computed[n->out[i]->id] = any;
    }
}

const bool *network_part(Module *m, NetworkPart part) {
    Graph *g = m->graph;
    Parts p = {.ahead = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .behind = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .alive = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .computed = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .last = NEW_ARRAY(m->arena, bool, m->n_nodes + 1),
               .tail = NEW_ARRAY(m->arena, bool, m->n_nodes + 1)};
    find_computed(&p, g);
    for (size_t i = 0; i < g->n_out; i++)
        p.alive[g->out[i]->id] = true;
    for (Node *n = g->last; n; n = n->prev) {
        bool ahead = leads_to_layer(&p, n);
        bool alive = is_alive(&p, n);
        p.last[n->id] = is_layer(&p, n) && alive && !ahead;
        for (size_t i = 0; i < n->n_in; i++) {
            if (n->in[i] && (ahead || is_layer(&p, n)))
                p.ahead[n->in[i]->id] = true;
            if (n->in[i] && alive)
                p.alive[n->in[i]->id] = true;
        }
    }
    FOR_NODES(n, g) {
        bool behind = stands_behind(&p, n);
        p.tail[n->id] = behind && !is_layer(&p, n) && !leads_to_layer(&p, n);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                p.behind[n->out[i]->id] = behind || is_layer(&p, n);
    }
    return part == PART_LAST ? p.last : part == PART_TAIL ? p.tail : NULL;
}
