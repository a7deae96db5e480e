/* Where a target's sums of products of uint8 and int8 saturate. See legal.h. */
#include <stdlib.h>

#include "passes/target/legal.h"

typedef struct Saturating {
    size_t products;
    const Node *first;
} Saturating;

/* Two products of 255 and 127 leave int16, in which AVX2 adds pairs; of 255 and 64 they do not. */
static bool saturates(const Node *n) {
    const Value *w = n->in[n->def->quant.mac.weight];
    const Tensor *t = value_data(w);
    if (n->in[0]->type.elem != ELEM_UINT8 || w->type.elem != ELEM_INT8)
        return false;
    for (size_t i = 0; t && i < t->count; i++)
        if (llabs(tensor_int(t, i)) > 64)
            return true;
    return !t;
}

static void look_at_products(Graph *g, void *ctx) {
    Saturating *s = ctx;
    FOR_NODES(n, g) {
        if (!n->def || n->def->quant.kind != QUANT_MAC ||
            n->n_in <= (size_t)n->def->quant.mac.weight || !n->in[n->def->quant.mac.weight] ||
            !op_quant(n->in[0]) || !op_quant(n->in[n->def->quant.mac.weight]) || !saturates(n))
            continue;
        s->first = s->products++ ? s->first : n;
    }
}

void warn_of_saturation(Module *m, PassContext *c) {
    Saturating s = {0};
    if (c->saturates && c->target->saturates)
        module_each_graph(m, look_at_products, &s);
    if (s.products)
        diag_warning(
            c->d, s.first->loc,
            "uint8 times int8 weights beyond 64: without VNNI %s adds pairs of products "
            "in 16 bits, which saturate: use -reduce-range, or -weights=\"uint8 asym\" (%zu "
            "nodes)",
            c->target->runtime, s.products);
}
