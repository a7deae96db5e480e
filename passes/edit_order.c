/* Definitions before their readers, bodies included. See edit.h. */
#include "passes/edit.h"

typedef struct Order {
    bool *stands; /* by node id: at its place or before it, as far as the walk has come */
} Order;

static void define(Order *o, Node *at, const Value *x);

/* What `n`, which is `at` or stands in one of its bodies, reads of the graph of `at`. */
static void define_operands(Order *o, Node *at, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        define(o, at, n->in[i]);
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++) {
            const Graph *body = n->attrs[i].v.g[k];
            FOR_NODES(inner, body)
            define_operands(o, at, inner);
            for (size_t j = 0; j < body->n_out; j++)
                define(o, at, body->out[j]);
        }
}

static void define(Order *o, Node *at, const Value *x) {
    if (!x || x->kind != VALUE_NODE || x->graph != at->graph || o->stands[x->def->id])
        return;
    Node *n = x->def;
    o->stands[n->id] = true;
    node_remove(n);
    node_insert_before(at, n);
    define_operands(o, n, n);
}

static void order_graph(Graph *g, void *ctx) {
    Order *o = ctx;
    for (Node *n = g->first; n; n = n->next) {
        o->stands[n->id] = true;
        define_operands(o, n, n);
    }
}

void edit_order(Module *m) {
    Order o = {NEW_ARRAY(m->scratch, bool, m->n_nodes + 1)};
    module_each_graph(m, order_graph, &o);
}
