/* See exec/choice.h. */
#include "exec/choice.h"
#include "exec/partial.h"
#include "ir/ops/op.h"

void choice_mark_users(const Uses *uses, const Node *n, bool *follows) {
    for (size_t i = 0; i < n->n_out; i++) {
        const Use *use;
        size_t count = n->out[i] ? uses_of(uses, n->out[i], &use) : 0;
        for (size_t k = 0; k < count; k++) {
            const Node *user = use[k].node ? use[k].node : use[k].graph->owner;
            if (user)
                follows[in_main_graph(user)->id] = true;
        }
    }
}

const bool *choice_follows(Module *m) {
    const Uses *uses = uses_new(m);
    bool *follows = NEW_ARRAY(m->arena, bool, m->n_nodes);
    FOR_NODES(n, m->graph) {
        for (size_t i = 0; i < n->n_out; i++)
            follows[n->id] = follows[n->id] || value_is_counted(n->out[i]);
        if (follows[n->id])
            choice_mark_users(uses, n, follows);
    }
    return follows;
}

bool choice_is_integers(const Value *v) {
    return v && v->kind == VALUE_NODE && v->type.kind == TYPE_TENSOR && elem_is_int(v->type.elem) &&
           !v->type.quant;
}

bool choice_picks_by(const Node *n, size_t i) {
    const QuantRule *q = n->def ? &n->def->quant : NULL;
    return q && (q->kind == QUANT_MOVE || q->kind == QUANT_ORDER) && i < n->n_in &&
           !quant_rule_is_data(q, i) && choice_is_integers(n->in[i]);
}

const bool *choice_indices(const Module *m) {
    bool *picks = NEW_ARRAY(m->arena, bool, m->n_values);
    FOR_NODES(n, m->graph)
    for (size_t i = 0; i < n->n_in; i++)
        if (choice_picks_by(n, i))
            picks[n->in[i]->id] = true;
    return picks;
}

static bool makes_integers(const Value *v) {
    return choice_is_integers(v) && !(v->def->def && v->def->def->from_types);
}

/* Nodes stand behind what they read, so one walk from the last to the first comes to what reads
 * floats. What only tells shapes makes none. */
static void mark_makers(const Graph *g, bool *makers) {
    for (size_t i = 0; i < g->n_out; i++)
        if (makes_integers(g->out[i]))
            makers[in_main_graph(g->out[i]->def)->id] = true;
    for (const Node *n = g->last; n; n = n->prev)
        for (size_t i = 0; i < n->n_in; i++) {
            const Value *v = n->in[i];
            if ((makers[n->id] || choice_picks_by(n, i)) && makes_integers(v))
                makers[in_main_graph(v->def)->id] = true;
        }
}

const bool *choice_picked(Module *m, const Uses *uses) {
    bool *follows = NEW_ARRAY(m->arena, bool, m->n_nodes);
    bool *makers = NEW_ARRAY(m->arena, bool, m->n_nodes);
    mark_makers(m->graph, makers);
    FOR_NODES(n, m->graph) {
        for (size_t i = 0; i < n->n_in; i++)
            follows[n->id] = follows[n->id] || choice_picks_by(n, i);
        if (follows[n->id])
            choice_mark_users(uses, n, follows);
    }
    for (uint32_t i = 0; i < m->n_nodes; i++)
        follows[i] = follows[i] || makers[i];
    return follows;
}

bool choice_is_open(const Value *v) {
    size_t count;
    return v->type.kind != TYPE_TENSOR || !type_count(v->type, &count) || value_is_counted(v);
}
