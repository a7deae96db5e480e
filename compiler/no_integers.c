/* -integer-only of a float model: what no data can make integers of is said before it asks for
 * data.
 */
#include "compiler/no_integers.h"
#include "passes/quantize/choice.h"

typedef struct Search {
    Diags *d;
    size_t said;
} Search;

static bool is_float(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && elem_is_float(v->type.elem);
}

/* Constants are computed ahead; what only looks at types needs no numbers. */
static bool computes_floats(const Node *n) {
    if (has_bodies(n) || node_conversion(n) != CONVERT_NONE || (n->def && n->def->from_types) ||
        (n->n_out && value_data(n->out[0])))
        return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (is_float(n->out[i]))
            return true;
    for (size_t i = 0; i < n->n_in; i++)
        if (is_float(n->in[i]) && !value_data(n->in[i]))
            return true;
    return false;
}

static void look(Graph *g, void *ctx) {
    Search *s = ctx;
    FOR_NODES(n, g) {
        const char *why = why_never_integer(n);
        if (!why || !computes_floats(n))
            continue;
        diag_error(s->d, n->loc, "-integer-only: %s stays float: %s", node_text(n), why);
        s->said++;
    }
}

bool no_integers(Module *m, Diags *d) {
    Search s = {d, 0};
    module_each_graph(m, look, &s);
    return s.said > 0;
}
