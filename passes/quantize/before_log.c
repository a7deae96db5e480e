/* See passes/quantize/before_log.h. */
#include "passes/quantize/before_log.h"

#include "ir/ops/op.h"

enum { PRODUCTS = 2 }; /* a Fourier transform and the bands of its spectrum */

typedef struct Back {
    int *seen; /* by node id: one more than the fewest products behind it; 0: not met */
    bool *before;
    const Node **todo;
    size_t n, cap;
    Arena *a;
} Back;

/* Small numbers stay apart from 0, and large ones from each other. */
static bool keeps_small(const Node *n) {
    static const char *const names[] = {"Abs",       "Add",        "Cast",     "Clip",
                                        "Div",       "Max",        "Mul",      "Pow",
                                        "ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare",
                                        "Relu",      "Sqrt",       "Sub",      "Sum"};
    if (!n->def)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (node_is(n, names[i]))
            return true;
    return n->def->quant.kind == QUANT_MOVE || n->def->quant.kind == QUANT_JOIN;
}

static bool is_product(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_MAC;
}

static void meet(Back *b, const Value *v, int products) {
    const Node *n = v ? v->def : NULL;
    if (!n || (b->seen[n->id] && b->seen[n->id] <= products + 1) ||
        !(is_product(n) || keeps_small(n)))
        return;
    b->seen[n->id] = products + 1;
    ARENA_PUSH(b->a, b->todo, b->n, b->cap, n);
}

static void walk(Back *b) {
    while (b->n) {
        const Node *n = b->todo[--b->n];
        int products = b->seen[n->id] - 1 + is_product(n);
        b->before[n->id] = b->before[n->id] || is_product(n);
        for (size_t i = 0; products < PRODUCTS && i < n->n_in; i++)
            meet(b, n->in[i], products);
    }
}

static void look(Graph *g, void *ctx) {
    Back *b = ctx;
    FOR_NODES(n, g)
    if (node_is(n, "Log")) {
        meet(b, n->in[0], 0);
        walk(b);
    }
}

const bool *before_log(Module *m) {
    Back b = {.seen = NEW_ARRAY(m->arena, int, m->n_nodes),
              .before = NEW_ARRAY(m->arena, bool, m->n_nodes),
              .a = m->arena};
    module_each_graph(m, look, &b);
    return b.before;
}
