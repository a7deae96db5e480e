/* Programs without what cannot run (ProgramOptions.partial): data may still be run through the
 * rest, to look at what values are there. */
#include "exec/partial.h"
#include "ir/ops/bind_node.h"

const Node *in_main_graph(const Node *n) {
    while (n->graph->owner)
        n = n->graph->owner;
    return n;
}

/* What reads the node's results is left out for the same reason; it comes later. */
static void spread(Binder *b, const Node *n) {
    Rejection **why = b->program->left_out->why;
    for (size_t i = 0; i < n->n_out; i++) {
        const Use *use;
        size_t uses = n->out[i] ? uses_of(b->uses, n->out[i], &use) : 0;
        for (size_t k = 0; k < uses; k++) {
            const Node *user = use[k].node ? use[k].node : use[k].graph->owner;
            user = user ? in_main_graph(user) : NULL; /* NULL: an output of the model */
            if (user && !why[user->id])
                why[user->id] = why[n->id];
        }
    }
}

static void leave_out(Binder *b, const Node *n) {
    LeftOut *out = b->program->left_out;
    Rejection *r = b->rejection;
    out->why[n->id] = r;
    for (size_t i = 0; i < out->n; i++)
        if (out->reasons[i] == r)
            return;
    ARENA_PUSH(b->arena, out->reasons, out->n, out->cap, r);
}

bool bind_partly(Binder *b, Graph *g) {
    Rejection **why = b->program->left_out->why;
    FOR_NODES(n, g) {
        int errors = diags_errors(b->diags);
        b->rejection = NULL;
        if (!why[n->id] && !b->failed && !bind_node(b, n)) {
            if (diags_errors(b->diags) > errors)
                return false;
            leave_out(b, n);
            b->failed = false;
        }
        if (why[n->id])
            spread(b, n);
    }
    return !b->failed;
}

const Rejection *program_left_out(const Program *p, const Value *v) {
    const Node *n = v->kind == VALUE_NODE ? v->def : v->graph->owner;
    return p->left_out && n ? p->left_out->why[in_main_graph(n)->id] : NULL;
}

/* ---- what is left, and what is not ---- */

typedef struct Walk {
    const Program *program;
    bool useful;
} Walk;

static void look_for_use(Graph *g, void *ctx) {
    Walk *w = ctx;
    FOR_NODES(n, g) {
        enum QuantClass kind = n->def ? n->def->quant.kind : QUANT_NEVER;
        if (!w->program->left_out->why[in_main_graph(n)->id])
            w->useful = w->useful || kind == QUANT_MAC || kind == QUANT_COMPUTE;
    }
}

bool partial_is_useful(const Program *p) {
    Walk w = {p, false};
    module_each_graph(p->module, look_for_use, &w);
    return w.useful;
}

static void count_value(Value *v, void *ctx) {
    const Program *p = ctx;
    bool is_float = v->type.kind == TYPE_NONE ||
                    (v->type.kind == TYPE_TENSOR &&
                     (v->type.elem == ELEM_UNDEFINED || elem_unpacked(v->type.elem) == ELEM_FLOAT));
    Rejection *r = v->kind == VALUE_NODE ? (Rejection *)(uintptr_t)program_left_out(p, v) : NULL;
    if (r && is_float)
        r->values++;
}

void partial_count(Program *p) {
    module_each_value(p->module, count_value, p);
}

const LeftOut *left_out_reasons(Arena *a, const LeftOut *of) {
    if (!of)
        return NULL;
    LeftOut *to = NEW(a, LeftOut);
    for (size_t i = 0; i < of->n; i++) {
        Rejection *r = arena_copy(a, of->reasons[i], sizeof *r);
        r->op = arena_str(a, r->op);
        r->why = arena_str(a, str_from(r->why)).s;
        ARENA_PUSH(a, to->reasons, to->n, to->cap, r);
    }
    return to;
}
