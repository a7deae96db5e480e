/* See compiler/classes.h. */
#include "compiler/classes.h"

#include "ir/ops/op.h"

static bool has_constant(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && value_is_const(n->in[i]))
            return true;
    return false;
}

static const Value *computed_operand(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && !value_is_const(n->in[i]))
            return n->in[i];
    return NULL;
}

/* What makes the numbers of `v`, behind what only moves, converts or shifts them. */
static const Node *maker(const Value *v) {
    while (v && v->kind == VALUE_NODE && v->def->n_in) {
        const Node *n = v->def;
        bool moves = n->def && n->def->quant.kind == QUANT_MOVE;
        bool shifts = node_is(n, "Add") && has_constant(n);
        if (!moves && !shifts && node_conversion(n) == CONVERT_NONE)
            return n;
        v = computed_operand(n);
    }
    return NULL;
}

static bool as_long_as_an_input(const Graph *g, size_t count) {
    size_t n;
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data && type_count(g->in[i]->type, &n) && n == count)
            return true;
    return false;
}

bool are_classes(const Value *v, size_t most) {
    Type t = v->type;
    const Node *n = maker(v);
    size_t count;
    if (!n || !type_count(t, &count) || t.rank < 2 || t.dims[1].value < 2 || count > most ||
        !elem_is_float(type_real_elem(t)))
        return false;
    for (int i = 2; i < t.rank; i++)
        if (t.dims[i].value != 1)
            return false;
    if (node_is(n, "Softmax") || node_is(n, "LogSoftmax"))
        return true;
    return n->def && n->def->quant.kind == QUANT_MAC && has_constant(n) &&
           !as_long_as_an_input(v->graph, count);
}
