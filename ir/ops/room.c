/* How busy the arena is, so that kernels know how much scratch costs nothing. */
#include "ir/ops/bind_node.h"

static size_t value_bytes(const Value *v) {
    size_t count;
    return !v->data && type_count(v->type, &count) ? elem_bytes(elem_unpacked(v->type.elem), count)
                                                   : 0;
}

/* What is alive from its first to its last use within a graph; what others than its nodes read
 * lives on. Values that share memory count each, so only nodes that multiply and accumulate tell
 * how busy the arena is: around them few do. */
static void find_busiest(Graph *g, void *ctx) {
    Binder *b = ctx;
    size_t alive = 0, place = 0, *last = NEW_ARRAY(b->arena, size_t, b->n_slots);
    FOR_NODES(n, g) {
        place++;
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i])
                last[n->in[i]->id] = place;
    }
    for (size_t i = 0; i < g->n_out; i++)
        last[g->out[i]->id] = 0;
    for (size_t i = 0; i < g->n_in; i++)
        alive += value_bytes(g->in[i]);
    place = 0;
    FOR_NODES(n, g) {
        place++;
        for (size_t i = 0; i < n->n_out; i++)
            alive += n->out[i] ? value_bytes(n->out[i]) : 0;
        if (n->n_out && n->out[0])
            b->alive[n->out[0]->id] = alive;
        if (n->def && n->def->quant.kind == QUANT_MAC && alive > b->busiest)
            b->busiest = alive;
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] && last[n->in[i]->id] == place) {
                alive -= value_bytes(n->in[i]);
                last[n->in[i]->id] = 0; /* once */
            }
    }
}

bool bind_spares_scratch(const Binder *b) {
    return b->options.least_scratch;
}

size_t bind_room(Binder *b, const Node *n) {
    if (bind_spares_scratch(b))
        return 0;
    if (!b->alive) {
        b->alive = NEW_ARRAY(b->arena, size_t, b->n_slots);
        module_each_graph(b->program->module, find_busiest, b);
    }
    /* One of a node made while binding is not among them, nor one that is left out. */
    uint32_t id = n->out[0] ? n->out[0]->id : UINT32_MAX;
    size_t own = id < b->program->module->n_values ? b->alive[id] : b->busiest;
    size_t most = b->busiest + b->busiest / 32;
    return own < most ? most - own : 0;
}
