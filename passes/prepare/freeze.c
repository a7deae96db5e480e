/* Makes graph inputs that carry a default value plain constants.
 *
 * Before IR version 4 every initializer had to be an input too, so those are simply constants. In
 * newer models a caller may override the default; freezing them is reported, as it changes the
 * interface. Quantization needs to know weights, so it freezes. */
#include "passes/pass.h"

static void freeze(Graph *g, Value *v) {
    v->kind = VALUE_CONST;
    v->declared = false;
    ARENA_PUSH(g->module->arena, g->consts, g->n_consts, g->cap_consts, v);
}

bool pass_freeze(Module *m, PassContext *c) {
    Graph *g = m->graph;
    size_t kept = 0, frozen = 0;
    Value *first = NULL;
    for (size_t i = 0; i < g->n_in; i++) {
        if (!g->in[i]->data) {
            g->in[kept++] = g->in[i];
            continue;
        }
        if (frozen++ == 0)
            first = g->in[i];
        freeze(g, g->in[i]);
    }
    g->n_in = kept;
    if (frozen && m->ir_version >= 4)
        diag(
            c->d, DIAG_REMARK, first->loc,
            "%zu inputs with a default value become constants, %s the first: callers can no longer "
            "set them",
            frozen, diag_name(c->d, first->name));
    if (m->ir_version < 4) /* initializers need not be inputs from here on */
        m->ir_version = 4;
    return true;
}
