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

/* Integers that are computed, and yes or no for each element (Compress). What comes into a body
 * from the iteration before counts as well. */
static bool says_which(const Value *v) {
    bool computed = v && (v->kind == VALUE_NODE || (v->kind == VALUE_INPUT && v->graph->owner));
    return computed && v->type.kind == TYPE_TENSOR && !v->type.quant &&
           (elem_is_int(v->type.elem) || v->type.elem == ELEM_BOOL);
}

/* Of data movers all operands that are no data say so. */
static bool picks_by(const Node *n, size_t i) {
    const QuantRule *q = n->def ? &n->def->quant : NULL;
    if (!q || !says_which(n->in[i]))
        return false;
    bool moves = (q->kind == QUANT_MOVE || q->kind == QUANT_ORDER) && !quant_rule_is_data(q, i);
    return moves || (i < 32 && n->def->picks >> i & 1);
}

static void find_picks(Graph *g, void *ctx) {
    const PickedBy **by_node = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++) {
        if (!picks_by(n, i))
            continue;
        const Node *owner = in_main_graph(n);
        PickedBy *p = NEW(g->module->arena, PickedBy);
        *p = (PickedBy){n->in[i], by_node[owner->id]};
        by_node[owner->id] = p;
    }
}

const PickedBy *const *choice_picks(Module *m) {
    const PickedBy **by_node = NEW_ARRAY(m->arena, const PickedBy *, m->n_nodes);
    module_each_graph(m, find_picks, by_node);
    return by_node;
}

/* The node of the main graph that makes these integers; NULL where only shapes tell them. */
static const Node *maker_of(const Value *v) {
    if (v && v->kind == VALUE_INPUT && v->graph->owner)
        return in_main_graph(v->graph->owner);
    bool made = v && v->kind == VALUE_NODE && !(v->def->def && v->def->def->from_types);
    return made ? in_main_graph(v->def) : NULL;
}

static void mark(bool *makers, const Node *n) {
    if (n)
        makers[n->id] = true;
}

/* Nodes stand behind what they read, so one walk from the last to the first comes to what reads
 * floats. */
static void mark_makers(const Graph *g, const PickedBy *const *picks, bool *makers) {
    for (size_t i = 0; i < g->n_out; i++)
        if (choice_is_integers(g->out[i]))
            mark(makers, maker_of(g->out[i]));
    FOR_NODES(n, g)
    for (const PickedBy *p = picks[n->id]; p; p = p->next)
        mark(makers, maker_of(p->value));
    for (const Node *n = g->last; n; n = n->prev)
        for (size_t i = 0; makers[n->id] && i < n->n_in; i++)
            if (choice_is_integers(n->in[i]))
                mark(makers, maker_of(n->in[i]));
}

const bool *choice_picked(Module *m, const PickedBy *const *picks, const Uses *uses) {
    bool *follows = NEW_ARRAY(m->arena, bool, m->n_nodes);
    bool *makers = NEW_ARRAY(m->arena, bool, m->n_nodes);
    mark_makers(m->graph, picks, makers);
    FOR_NODES(n, m->graph) {
        follows[n->id] = follows[n->id] || picks[n->id];
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
