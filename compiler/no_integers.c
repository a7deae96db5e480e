/* -integer-only: what no data can make integers of. Of a float model it is said before it asks for
 * data. */
#include "compiler/no_integers.h"
#include "passes/quantize/choice.h"

typedef struct Search {
    Diags *d;
    size_t said;
} Search;

static bool is_float(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && elem_is_float(v->type.elem);
}

/* Constants are computed ahead; what only looks at types needs no numbers, and order-integers lets
 * some read the integers themselves. */
static bool computes_floats(const Node *n) {
    if (has_bodies(n) || node_conversion(n) != CONVERT_NONE ||
        (n->def && (n->def->from_types || n->def->ranks || n->def->false_of_integers)) ||
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

static const Value *dynamic_operand(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (v && v->type.kind == TYPE_TENSOR && v->type.quant &&
            v->type.quant->kind == QUANT_DYNAMIC)
            return v;
    }
    return NULL;
}

static void look_for_dynamic(Graph *g, void *ctx) {
    Search *s = ctx;
    FOR_NODES(n, g) {
        const Value *v = dynamic_operand(n);
        if (!v || node_conversion(n) != CONVERT_NONE || node_moves(n))
            continue;
        while (v->def && node_moves(v->def) && v->def->in[0])
            v = v->def->in[0];
        diag_error(s->d, n->loc,
                   "-integer-only: %s computes in floating point: the scale of its operand '%s' "
                   "is computed at run time",
                   node_text(n), diag_name(s->d, v->name));
        s->said++;
    }
}

bool dynamic_scales(Module *m, Diags *d) {
    Search s = {d, 0};
    module_each_graph(m, look_for_dynamic, &s);
    return s.said > 0;
}
