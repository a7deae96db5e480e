/* See exec/choice.h. */
#include "exec/choice.h"
#include "exec/partial.h"
#include "ir/ops/op.h"

static void mark_users(const Uses *uses, const Node *n, bool *follows) {
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
            mark_users(uses, n, follows);
    }
    return follows;
}

bool choice_is_open(const Value *v) {
    size_t count;
    return v->type.kind != TYPE_TENSOR || !type_count(v->type, &count) || value_is_counted(v);
}
