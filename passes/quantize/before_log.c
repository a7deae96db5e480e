/* See passes/quantize/before_log.h. */
#include "passes/quantize/before_log.h"

#include "ir/ops/op.h"

static const double EPSILON = 1e-3; /* what is added to keep a logarithm finite is less */

enum { PRODUCTS = 2 }; /* a Fourier transform and the bands of its spectrum */

typedef struct Back {
    int *seen; /* by value id: one more than the fewest products behind it; 0: not met */
    bool *before;
    const Value **todo;
    size_t n, cap;
    Arena *a;
} Back;

/* Which operators of floats leave small numbers apart from 0, beside those that move numbers. */
static bool is_transparent(const Node *n) {
    static const char *const names[] = {"Abs",
                                        "Add",
                                        "BatchNormalization",
                                        "Cast",
                                        "Clip",
                                        "Div",
                                        "LpNormalization",
                                        "Max",
                                        "Mul",
                                        "Neg",
                                        "Pow",
                                        "Reciprocal",
                                        "ReduceL2",
                                        "ReduceMean",
                                        "ReduceSum",
                                        "ReduceSumSquare",
                                        "Relu",
                                        "Sqrt",
                                        "Sub",
                                        "Sum"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (node_is(n, names[i]))
            return true;
    return n->def->quant.kind == QUANT_MOVE || n->def->quant.kind == QUANT_JOIN;
}

/* All above what keeps a logarithm finite. */
static bool is_large(const Value *v) {
    const Tensor *t = v ? value_data(v) : NULL;
    bool large = t && t->data && t->count;
    for (size_t i = 0; large && i < t->count; i++)
        large = tensor_float(t, i) > EPSILON;
    return large;
}

static bool keeps_small(const Node *n) {
    if (!n->def || !is_transparent(n))
        return false;
    bool hides = node_is(n, "Add") || node_is(n, "Sum") || node_is(n, "Max");
    for (size_t i = 0; hides && i < n->n_in; i++)
        if (is_large(n->in[i]))
            return false;
    return !(node_is(n, "Clip") && n->n_in > 1 && is_large(n->in[1]));
}

/* Places and lengths are none. */
static bool is_data(const Node *n, size_t i) {
    QuantClass kind = n->def->quant.kind;
    return (kind != QUANT_MOVE && kind != QUANT_JOIN && kind != QUANT_MAC) ||
           quant_rule_is_data(&n->def->quant, i) ||
           (kind == QUANT_MAC && (int)i == n->def->quant.mac.weight);
}

static bool is_product(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_MAC;
}

static void meet(Back *b, const Value *v, int products) {
    if (!v || !v->def || (b->seen[v->id] && b->seen[v->id] <= products + 1))
        return;
    b->seen[v->id] = products + 1;
    ARENA_PUSH(b->a, b->todo, b->n, b->cap, v);
}

/* What each branch of `n` (an If) yields as the value `v`. */
static void meet_branches(Back *b, const Node *n, const Value *v, int products) {
    size_t k = 0;
    while (n->out[k] != v)
        k++;
    for (size_t i = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == ATTR_GRAPH && k < n->attrs[i].v.g[0]->n_out)
            meet(b, n->attrs[i].v.g[0]->out[k], products);
}

static void meet_operands(Back *b, const Node *n, int products) {
    products += is_product(n);
    b->before[n->id] = b->before[n->id] || is_product(n);
    for (size_t i = 0; products < PRODUCTS && i < n->n_in; i++)
        if (is_data(n, i))
            meet(b, n->in[i], products);
}

static void walk(Back *b) {
    while (b->n) {
        const Value *v = b->todo[--b->n];
        const Node *n = v->def;
        int products = b->seen[v->id] - 1;
        if (n->def && n->def->yields_results)
            meet_branches(b, n, v, products);
        else if (is_product(n) || keeps_small(n))
            meet_operands(b, n, products);
    }
}

static void look(Graph *g, void *ctx) {
    Back *b = ctx;
    FOR_NODES(n, g)
    if (node_is(n, "Log") || node_is(n, "ReduceLogSum")) {
        meet(b, n->in[0], 0);
        walk(b);
    }
}

const bool *before_log(Module *m) {
    Back b = {.seen = NEW_ARRAY(m->arena, int, m->n_values),
              .before = NEW_ARRAY(m->arena, bool, m->n_nodes),
              .a = m->arena};
    module_each_graph(m, look, &b);
    return b.before;
}
