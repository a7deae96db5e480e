#include "passes/quantize/sharing.h"

#include "passes/quantize/choice.h"
#include "passes/edit.h"

bool is_follower(const Node *n) {
    QuantClass k = n->def->quant.kind;
    return k == QUANT_MOVE || k == QUANT_ORDER || k == QUANT_CLAMP;
}

Value *sharing_root(const Sharing *s, Value *v) {
    while (s->root[v->id] != v)
        v = s->root[v->id];
    return v;
}

static bool is_integer(const Sharing *s, const Node *n) {
    return n->def && s->integer[n->id];
}

/* Whether the scheme asks for the same of both. */
static bool alike(const Sharing *s, Value *x, Value *y) {
    Choice a = choice_of_value(s->c, s->uses, sharing_root(s, x));
    Choice b = choice_of_value(s->c, s->uses, y);
    return x->type.quant || choice_equal(&a, &b);
}

static bool read_by_one(const Sharing *s, const Value *v) {
    const Use *use;
    size_t n = uses_of(s->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || use[i].node != use[0].node || use[i].node->graph != v->graph)
            return false;
    return n > 0;
}

/* ---- Relu and Clip ---- */

/* The result of a quantized computation that only this clamp reads. */
static bool absorbs_clamp(const Sharing *s, const Node *clamp) {
    Value *x = clamp->in[0];
    return x->def && s->integer[x->def->id] && !is_follower(x->def) && !x->type.quant &&
           x->graph == clamp->graph && uses_only_node(s->uses, x);
}

/* Conv, Clip, Relu: all take the last one's range. */
static void share_clamped(Sharing *s, Node *n) {
    if (n->def->quant.kind == QUANT_CLAMP && absorbs_clamp(s, n) && alike(s, n->out[0], n->in[0]))
        s->root[n->in[0]->id] = sharing_root(s, n->out[0]);
}

/* Whether the operand's parameters can stand for the result too. A Clip whose lower bound lies
 * above everything its operand ever was would saturate there. */
static bool covers(const Sharing *s, Value *operand, Value *result) {
    float lo, hi, min, max;
    const Value *root = sharing_root(s, operand);
    return root->type.quant || !edit_range(root, &lo, &hi) || !edit_range(result, &min, &max) ||
           (min >= lo && max <= hi);
}

/* ---- Concat, Where, Min, Max ---- */

/* A Relu disappears into integers that end at its bounds; others would make it a node of its own.
 */
static bool ends_at_bounds(const Sharing *s, const Node *clamp, const Value *result) {
    float lo, hi, min, max;
    OpCtx c = op_ctx(clamp, s->c->d);
    return clamp->def->quant.clamp && clamp->def->quant.clamp(&c, &lo, &hi) &&
           edit_range(result, &min, &max) && min >= lo && max <= hi;
}

/* The operand before this one in a chain that leads to `join`: NULL at its start. False where the
 * chain cannot take the parameters of the result. */
static bool step_up(const Sharing *s, Value *v, Value *result, Value **before) {
    const Node *n = v->def;
    *before = NULL;
    if (v->type.quant || !s->wanted[v->id] || v->graph != result->graph || !read_by_one(s, v) ||
        !alike(s, v, result))
        return false;
    if (!n || !is_integer(s, n))
        return true;
    if (n->def->quant.fixed_output || n->n_out > 1 ||
        (n->def->quant.kind == QUANT_CLAMP && !ends_at_bounds(s, n, result)))
        return false;
    if (is_follower(n))
        *before = n->in[0];
    return true;
}

/* What is read by the join alone would be rounded a second time, or has no other use for steps of
 * its own. */
static void share_joined(Sharing *s, Node *join) {
    Value *y = join->out[0], *before;
    if (join->def->quant.kind != QUANT_JOIN || !s->wanted[y->id])
        return;
    for (size_t i = 0; i < join->n_in; i++) {
        if (!join->in[i] || !quant_rule_is_data(&join->def->quant, i))
            continue;
        bool ok = true;
        for (Value *v = join->in[i]; ok && v; v = before)
            ok = step_up(s, v, y, &before);
        for (Value *v = join->in[i]; ok && v; v = before) {
            step_up(s, v, y, &before);
            s->root[v->id] = sharing_root(s, y);
        }
    }
}

/* ---- all ---- */

static void share_followed(Sharing *s, Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        Value *y = n->out[i], *x = n->in[0];
        if (y && s->wanted[y->id] && !y->type.quant &&
            (n->def->quant.kind != QUANT_CLAMP || covers(s, x, y)) && alike(s, x, y) &&
            sharing_root(s, y) != sharing_root(s, x))
            s->root[sharing_root(s, y)->id] = sharing_root(s, x);
    }
}

static void share_graph(Graph *g, void *ctx) {
    Sharing *s = ctx;
    for (Node *n = g->last; n; n = n->prev) {
        if (!is_integer(s, n))
            continue;
        share_joined(s, n);
        share_clamped(s, n);
    }
    FOR_NODES(n, g) {
        if (is_integer(s, n) && is_follower(n))
            share_followed(s, n);
    }
}

static void own_root(Value *v, void *root) {
    ((Value **)root)[v->id] = v;
}

Sharing sharing_new(Module *m, const PassContext *c, const Uses *uses, const bool *integer,
                    const bool *wanted) {
    Sharing s = {c, uses, integer, wanted, NEW_ARRAY(m->arena, Value *, m->n_values)};
    module_each_value(m, own_root, s.root);
    return s;
}

void sharing_find(Sharing *s, Module *m) {
    module_each_graph(m, share_graph, s);
}
