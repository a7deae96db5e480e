/* See network.h: where a node stands in a network. */
#include "passes/network.h"
#include "passes/marks.h"

typedef struct Parts {
    bool *ahead; /* by value id: a layer reads what it leads to */
    bool *last, *tail;
    bool *behind;   /* by value id: a layer stands above */
    bool *computed; /* by value id: an input has a part in it */
    bool *alive;    /* by value id: an output has a part of it */
} Parts;

/* A product by what no input has a part in, or a recurrent operator and the like. */
static bool is_layer(const Parts *p, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    const Value *w = r && r->kind == QUANT_MAC ? node_input(n, (size_t)r->mac.weight) : NULL;
    return (w && !p->computed[w->id]) || (n->def && n->def->family == FAMILY_SEQUENCE);
}

void network_mark_inputs(const Graph *g, bool *computed) {
    for (size_t i = 0; i < g->n_in; i++)
        computed[g->in[i]->id] = !g->in[i]->data;
}

void network_mark_computed(const Node *n, bool *computed) {
    if (has_bodies(n) || any_marked(n->in, n->n_in, computed))
        mark_all(n->out, n->n_out, computed);
}

const bool *network_part(Module *m, NetworkPart part) {
    Graph *g = m->graph;
    Parts p = {.ahead = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .behind = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .alive = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .computed = NEW_ARRAY(m->arena, bool, m->n_values + 1),
               .last = NEW_ARRAY(m->arena, bool, m->n_nodes + 1),
               .tail = NEW_ARRAY(m->arena, bool, m->n_nodes + 1)};
    network_mark_inputs(g, p.computed);
    FOR_NODES(n, g)
    network_mark_computed(n, p.computed);
    mark_all(g->out, g->n_out, p.alive);
    for (Node *n = g->last; n; n = n->prev) {
        bool ahead = any_marked(n->out, n->n_out, p.ahead);
        bool alive = any_marked(n->out, n->n_out, p.alive);
        p.last[n->id] = is_layer(&p, n) && alive && !ahead;
        if (ahead || is_layer(&p, n))
            mark_all(n->in, n->n_in, p.ahead);
        if (alive)
            mark_all(n->in, n->n_in, p.alive);
    }
    FOR_NODES(n, g) {
        bool behind = any_marked(n->in, n->n_in, p.behind);
        p.tail[n->id] = behind && !is_layer(&p, n) && !any_marked(n->out, n->n_out, p.ahead);
        if (behind || is_layer(&p, n))
            mark_all(n->out, n->n_out, p.behind);
    }
    return part == PART_LAST ? p.last : part == PART_TAIL ? p.tail : NULL;
}
