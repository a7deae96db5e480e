/* x / 2 * (1 + erf(x / sqrt 2)), as exporters spell it before opset 20, becomes Gelu: one table on
 * integers, where the five nodes would be rounded one by one. Before opset 20 it is com.microsoft's
 * Gelu, which onnxruntime and this program know; spell-onnx spells it out again for others. */
#include "passes/edit.h"

#include <math.h>

typedef struct Fuse {
    Module *m;
    Uses *uses; /* of the start: nodes that are fused share none that are asked about */
    int64_t opset;
    Node **left; /* nodes that may be of no use any more */
    size_t n_left, cap_left;
} Fuse;

static bool is_number(const Value *v, double want) {
    const Tensor *t = edit_float_const(v);
    return t && t->count == 1 && fabs(tensor_float(t, 0) - want) <= 1e-4 * fabs(want);
}

/* The operand of an operator of two whose other operand is this number; NULL for other nodes. */
static Value *beside(const Node *n, const char *op, double number) {
    if (!n || !node_is(n, op) || n->n_in != 2 || !n->in[0] || !n->in[1])
        return NULL;
    if (is_number(n->in[1], number))
        return n->in[0];
    return strcmp(op, "Div") != 0 && is_number(n->in[0], number) ? n->in[1] : NULL;
}

static Value *erf_operand(const Node *erf) {
    const Node *scale =
        node_is(erf, "Erf") && erf->n_in == 1 && erf->in[0] ? erf->in[0]->def : NULL;
    Value *x = beside(scale, "Div", M_SQRT2);
    return x ? x : beside(scale, "Mul", M_SQRT1_2);
}

/* The node that makes the whole: (x * sum) * 0.5, or (x * 0.5) * sum. */
static Node *product(const Fuse *f, const Value *x, const Value *sum) {
    Node *m = uses_only_here(f->uses, sum);
    if (!m || !node_is(m, "Mul") || m->n_in != 2)
        return NULL;
    const Value *other = m->in[m->in[0] == sum ? 1 : 0];
    if (other && other->def && beside(other->def, "Mul", 0.5) == x)
        return m;
    Node *half = other == x ? uses_only_here(f->uses, m->out[0]) : NULL;
    return half && beside(half, "Mul", 0.5) == m->out[0] ? half : NULL;
}

/* Goes at the end where nobody reads it then. */
static void leave(Fuse *f, const Value *v) {
    if (v->def)
        ARENA_PUSH(f->m->arena, f->left, f->n_left, f->cap_left, v->def);
}

static void fuse(Fuse *f, Node *erf) {
    Value *x = erf_operand(erf);
    Node *add = x && erf->n_out ? uses_only_here(f->uses, erf->out[0]) : NULL;
    if (!add || beside(add, "Add", 1) != erf->out[0])
        return;
    Node *last = product(f, x, add->out[0]);
    if (!last || !last->out[0])
        return;
    Node *gelu =
        node_new(erf->graph, f->opset >= 20 ? STR_NONE : STR("com.microsoft"), STR("Gelu"), 1, 1);
    gelu->in[0] = x;
    gelu->name = last->name;
    gelu->loc = last->loc;
    node_from(gelu, erf, "fuse-gelu");
    node_absorb(gelu, last, "fuse-gelu");
    gelu->out[0] = last->out[0];
    gelu->out[0]->def = gelu;
    gelu->out[0]->index = 0;
    node_insert_before(last, gelu);
    last->out[0] = NULL;
    leave(f, erf->in[0]);
    leave(f, erf->out[0]);
    leave(f, add->out[0]);
    leave(f, last->in[0]);
    leave(f, last->in[1]);
    node_remove(last);
}

static void fuse_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    fuse(ctx, n);
}

bool pass_fuse_gelu(Module *m, PassContext *c) {
    Fuse f = {.m = m, .uses = uses_new(m), .opset = module_opset(m, STR(""))};
    (void)c;
    module_each_graph(m, fuse_graph, &f);
    if (f.n_left && f.opset < 20 && !module_opset(m, STR("com.microsoft")))
        module_set_opset(m, STR("com.microsoft"), 1);
    edit_drop_unread(m, f.left, f.n_left);
    edit_sweep(m);
    return true;
}
