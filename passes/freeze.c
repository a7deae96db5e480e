/* Makes graph inputs that carry a default value plain constants.
 *
 * Before IR version 4 every initializer had to be an input too, so those are simply constants. In
 * newer models a caller may override the default; freezing them is reported, as it changes the
 * interface. Quantization needs to know weights, so it freezes. */
#include "passes/pass.h"

static void freeze(Module *m, PassContext *c, Value *v) {
    v->kind = VALUE_CONST;
    v->declared = false;
    if (m->ir_version >= 4)
        diag(c->d, DIAG_REMARK, v->loc,
             "input %s has a default value and becomes a constant: callers can no longer set it",
             diag_name(c->d, v->name));
    Graph *g = v->graph;
    ARENA_PUSH(m->arena, g->consts, g->n_consts, g->cap_consts, v);
}

bool pass_freeze(Module *m, PassContext *c) {
    Graph *g = m->graph;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_in; i++) {
        if (g->in[i]->data)
            freeze(m, c, g->in[i]);
        else
            g->in[kept++] = g->in[i];
    }
    g->n_in = kept;
    if (m->ir_version < 4) /* initializers need not be inputs from here on */
        m->ir_version = 4;
    return true;
}
