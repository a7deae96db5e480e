#include "compiler/plain_integers.h"
#include "ir/ops/qop.h"

typedef struct Look {
    const Job *j;
    bool refuses, refused, told; /* told: integers were warned of */
} Look;

static const char *reason(const PassContext *c, const Node *n) {
    for (size_t i = 0; i < c->n_remarks; i++)
        if (c->remarks[i].node == n)
            return c->remarks[i].reason;
    return "qxc does not know what it is as one of floats";
}

/* Once for integers, and for each Pad. */
static void warn_of(Look *l, const Node *n) {
    Diags *d = l->j->d;
    if (node_fills_from_double(n)) {
        diag_warning(d, n->loc,
                     "%s of floats by a double is not in ONNX, and runtimes refuse it; -emit=qdq, "
                     "qop or c make it float",
                     diag_name(d, n->op));
        return;
    }
    if (!l->told)
        diag_warning(d, n->loc,
                     "%s of plain integers is not in ONNX, and runtimes refuse it; -emit=qdq, "
                     "qop or c give it quantized types (said once)",
                     diag_name(d, n->op));
    l->told = true;
}

static void look_at_nodes(Graph *g, void *ctx) {
    Look *l = ctx;
    Diags *d = l->j->d;
    FOR_NODES(n, g) {
        if (!(node_on_integers(n) || qop_of(n)) || node_types_fit(n, g->module->mute))
            continue;
        if (!l->refuses) {
            warn_of(l, n);
            continue;
        }
        diag_error(d, n->loc, "%s of plain integers is not in ONNX, and stays so: %s",
                   diag_name(d, n->op), reason(&l->j->ctx, n));
        l->refused = true;
    }
}

bool plain_integers_fit(const Job *j, Module *m) {
    Look l = {.j = j, .refuses = j->form >= FORM_QDQ && !j->o->passes};
    if (j->form >= FORM_FAKE && !l.refuses) /* the summary says what is not raised, C refuses it */
        return true;
    module_each_graph(m, look_at_nodes, &l);
    return !l.refused;
}
