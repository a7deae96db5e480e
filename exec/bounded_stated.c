/* Lengths that a run tells, and the model states further on: of what computes each element by
 * itself operands have the result's dimensions. See exec/bounded.h. */
#include "exec/bounded_parts.h"
#include "ir/bound.h"
#include "ir/ops/op.h"

static bool is_each(const Node *n) {
    return n->def && !n->faulty && n->n_out && n->out[0] &&
           (n->def->slices == op_slices_each || n->def->infer == op_broadcast);
}

/* Dimension k of t, counted from the end; 1 where it is not there, as broadcasting has it. */
static int64_t from_end(Type t, int k) {
    return k < t.rank ? t.dims[t.rank - 1 - k].value : 1;
}

/* Whether all operands but `x` are of 1 there, so that x alone makes the result. */
static bool others_are_one(const Node *n, const Value *x, int k) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (v && v != x &&
            (v->type.kind != TYPE_TENSOR || v->type.rank < 0 || from_end(v->type, k) != 1))
            return false;
    }
    return true;
}

/* What nothing holds against a length. */
static bool is_open(const Value *v) {
    const OpDef *op = v->def->def;
    return !op || (node_shape_operand(v->def) && !op->bind_length);
}

static void set_length(Value *x, int64_t length) {
    int axis = type_open_axis(x->type);
    Dim *dims =
        arena_copy(x->graph->module->arena, x->type.dims, (size_t)x->type.rank * sizeof *dims);
    dims[axis] = dim_of(length);
    x->type.dims = dims;
}

static void follow(const Node *n, Value *x) {
    Type y = n->out[0]->type;
    if (!x || x->kind != VALUE_NODE || type_open_axis(x->type) < 0 || y.kind != TYPE_TENSOR ||
        y.rank < x->type.rank || is_open(x))
        return;
    int axis = type_open_axis(x->type), k = x->type.rank - 1 - axis;
    int64_t length = from_end(y, k);
    if (length < 0 || (length != 1 && !others_are_one(n, x, k)))
        return;
    set_length(x, length);
}

/* A stand-in for x that leaves no dimension open. */
static Value *of_fixed_shape(Arena *a, const Value *x) {
    Value *v = arena_copy(a, x, sizeof *x);
    Dim *dims = arena_copy(a, x->type.dims, (size_t)x->type.rank * sizeof *dims);
    for (int i = 0; i < x->type.rank; i++)
        dims[i] = dims[i].value < 0 ? dim_of(1) : dims[i];
    v->type.dims = dims;
    return v;
}

/* The node with operands of fixed shape: results that are open all the same are as long as it
 * finds (Unique: all but the inverse indices, which are as many as the operand has elements). */
static const Node *with_fixed_operands(const Node *n) {
    Arena *a = n->graph->module->arena;
    Node *s = arena_copy(a, n, sizeof *n);
    s->in = arena_copy(a, n->in, n->n_in * sizeof *n->in);
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->type.kind == TYPE_TENSOR && n->in[i]->type.rank > 0)
            s->in[i] = of_fixed_shape(a, n->in[i]);
    return s;
}

/* Results that are as long as the node finds have one length: what is stated of one of them holds
 * for all. */
static void share(const Node *n) {
    int64_t length = -1;
    if (!n->def || !n->def->counts || n->def->enter || n->faulty)
        return;
    OpCtx c = op_ctx(with_fixed_operands(n), n->graph->module->mute);
    if (!n->def->infer(&c))
        return;
    for (size_t i = 0; i < n->n_out && length < 0; i++) {
        int axis = n->out[i] && type_is_static(n->out[i]->type) ? type_open_axis(c.out[i]) : -1;
        length = axis >= 0 ? n->out[i]->type.dims[axis].value : -1;
    }
    for (size_t i = 0; i < n->n_out && length >= 0; i++)
        if (n->out[i] && type_open_axis(c.out[i]) >= 0 && type_open_axis(n->out[i]->type) >= 0)
            set_length(n->out[i], length);
}

/* From the last node on, as an operand may be the result of another one of them. */
static void look_at(Graph *g, void *ctx) {
    (void)ctx;
    for (Node *n = g->last; n; n = n->prev) {
        for (size_t i = 0; is_each(n) && i < n->n_in; i++)
            follow(n, n->in[i]);
        share(n);
    }
}

void lengths_from_results(Module *m) {
    module_each_graph(m, look_at, NULL);
    module_refine_early(m, m->mute);
}
