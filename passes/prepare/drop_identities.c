/* Takes out nodes that pass an operand on as it is: Identity, Dropout outside of training, Cast to
 * the type at hand, data movers that move nothing (Reshape to the shape it has, Slice of
 * everything), Mul by 1 and Add of 0, Concat with what has no elements. They part what belongs
 * together: Conv and the BatchNormalization behind it, an operator and its Relu. */
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/target/legal.h"

static const char PASS_NAME[] = "drop-identities";

typedef struct Drop {
    PassContext *c;
    Module *m;
    const Uses *uses;
    Value **now; /* by value id: what stands for it, NULL for itself */
} Drop;

static bool keeps_axes(const OpCtx *c, const QuantRule *q, int rank) {
    for (int i = 0; q->move.axis && i < rank; i++)
        if (q->move.axis(c, i) != i)
            return false;
    return true;
}

/* scale * x + shift with 1 and 0. */
static bool multiplies_by_one(const OpCtx *c, size_t *at) {
    double scale, shift;
    return c->node->def->affine(c, 1, 1, at, &scale, &shift) && scale == 1 && shift == 0;
}

/* Of operands that are joined the one that has elements. */
static bool joins_nothing_else(const OpCtx *c, const QuantRule *q, size_t *at) {
    size_t found = c->n_in, count;
    for (size_t i = 0; i < c->n_in; i++) {
        if (q->kind != QUANT_JOIN || !quant_rule_is_data(q, i) ||
            !type_count(op_type(c, i), &count))
            return false;
        if (count && found < c->n_in)
            return false;
        found = count ? i : found;
    }
    *at = found;
    return found < c->n_in;
}

static bool passes_on(const OpCtx *c, const Node *n, size_t *at) {
    const OpDef *def = n->def;
    Type x = op_type(c, 0), y = n->out[0]->type;
    *at = 0;
    if (def->passes_on && def->passes_on(c))
        return true;
    if (c->n_in > 1 && joins_nothing_else(c, &def->quant, at))
        return type_same_shape(op_type(c, *at), y);
    if (def->affine && multiplies_by_one(c, at))
        return type_same_shape(op_type(c, *at), y);
    return !def->passes_on && def->quant.kind == QUANT_MOVE && def->quant.data == 1 &&
           x.rank >= 0 && x.rank == y.rank && keeps_axes(c, &def->quant, x.rank);
}

/* Put beside a QuantizeLinear or DequantizeLinear to keep a target from fusing: raise-quant knows
 * what it stands for. */
static bool guards_conversion(const Drop *d, const Node *n) {
    const Node *reader = is_guard(n) ? uses_only_node(d->uses, n->out[0]) : NULL;
    return is_guard(n) && ((n->in[0]->def && is_onnx_dequantize(n->in[0]->def)) ||
                           (reader && is_onnx_quantize(reader)));
}

/* The operand that result 0 is, NULL where the node has work to do. */
static Value *passed(const Drop *d, const Node *n) {
    const Use *use;
    size_t at;
    if (!n->def || n->n_out < 1 || !n->out[0] || guards_conversion(d, n))
        return NULL;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i] && uses_of(d->uses, n->out[i], &use))
            return NULL;
    Type few[OP_FEW];
    OpCtx c = op_ctx_few(n, few, d->c->d);
    if (!passes_on(&c, n, &at))
        return NULL;
    Value *x = n->in[at], *y = n->out[0];
    while (d->now[x->id])
        x = d->now[x->id];
    bool same = x->type.kind == TYPE_TENSOR && x->type.elem == y->type.elem;
    return same && !x->type.quant && !y->type.quant ? x : NULL;
}

static void absorb(Value *x, const Node *n) {
    if (x->def)
        node_absorb(x->def, n, PASS_NAME);
    if (!x->stat)
        x->stat = n->out[0]->stat;
}

static void drop_inner(Graph *g, void *ctx) {
    Drop *d = ctx;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Value *x = passed(d, n);
        if (!x || uses_is_output(d->uses, n->out[0]))
            continue;
        absorb(x, n);
        d->now[n->out[0]->id] = x;
        node_remove(n);
    }
}

static void read_now(Graph *g, void *ctx) {
    const Drop *d = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        while (n->in[i] && d->now[n->in[i]->id])
            n->in[i] = d->now[n->in[i]->id];
}

/* What a graph yields keeps its name: the node before yields it, where that can. */
static void drop_last(Graph *g, void *ctx) {
    Drop *d = ctx;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Value *x = passed(d, n);
        if (!x || !x->def || x->graph != g || d->now[x->id] || uses_is_output(d->uses, x))
            continue;
        Value *y = n->out[0];
        absorb(x, n);
        y->stat = y->stat ? y->stat : x->stat;
        node_take_result(x->def, (size_t)x->index, y);
        d->now[x->id] = y;
        node_remove(n);
    }
}

bool pass_drop_identities(Module *m, PassContext *c) {
    Drop d = {c, m, uses_new(m), NEW_ARRAY(m->arena, Value *, m->n_values)};
    module_each_graph(m, drop_inner, &d);
    module_each_graph(m, read_now, &d);
    d.uses = uses_new(m);
    memset(d.now, 0, m->n_values * sizeof *d.now);
    module_each_graph(m, drop_last, &d);
    module_each_graph(m, read_now, &d);
    edit_sweep(m);
    return true;
}
