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

/* Whether parameters that are given to a neighbour are of the type that is said of this one. */
static bool fits(const Quant *q, const Choice *c) {
    const SchemeRule *r = c->by[CHOICE_TYPE];
    if (!r || r->of == SCHEME_ALL || c->is_float)
        return true;
    IntRange of = choice_range(c);
    return c->fixed ? quant_equal(c->fixed, q)
                    : c->storage == q->storage && of.lo == quant_lo(q) && of.hi == quant_hi(q);
}

/* Whether the scheme asks for the same of both. */
static bool alike(const Sharing *s, Value *x, Value *y) {
    Choice a = choice_of_value(s->c, s->uses, sharing_root(s, x));
    Choice b = choice_of_value(s->c, s->uses, y);
    return x->type.quant ? fits(x->type.quant, &b) : choice_equal(&a, &b);
}

/* The parameters that the file or a rule gives it, NULL: none. */
static const Quant *given(const Sharing *s, const Value *v) {
    return v->type.quant ? v->type.quant : choice_of_value(s->c, s->uses, v).fixed;
}

/* Whether it may take given parameters of a neighbour: no rule says another type of it. What it had
 * before it was decided anew is none to parameters that a rule states. */
static bool can_take(const Sharing *s, const Value *v, const Value *from) {
    const Quant *q = given(s, from);
    Choice o = choice_of_value(s->c, s->uses, v);
    bool ruled = !from->type.quant && !choice_said(&o, CHOICE_TYPE);
    return q && !v->type.quant && !o.fixed && !o.is_float && (ruled || fits(q, &o));
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

/* Conv, Clip, Relu: all take the last one's range; with given parameters on either side, those. */
static void share_clamped(Sharing *s, Node *n) {
    Value *x = n->in[0], *y = n->out[0];
    if (n->def->quant.kind != QUANT_CLAMP || !absorbs_clamp(s, n))
        return;
    if (alike(s, y, x) || can_take(s, x, sharing_root(s, y)))
        s->root[x->id] = sharing_root(s, y);
    else if (sharing_root(s, y) == y && can_take(s, y, x))
        s->root[y->id] = x;
}

/* Whether the operand's parameters can stand for the result too. A Clip whose lower bound lies
 * above everything its operand ever was would saturate there. */
static bool covers(const Sharing *s, Value *operand, Value *result) {
    float lo, hi, min, max;
    const Value *root = sharing_root(s, operand);
    return given(s, root) || !edit_range(root, &lo, &hi) || !edit_range(result, &min, &max) ||
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
    const Quant *q = given(s, sharing_root(s, result));
    *before = NULL;
    if ((q && !quant_is_per_tensor(q)) || v->type.quant || !s->wanted[v->id] ||
        v->graph != result->graph || !read_by_one(s, v) ||
        !(alike(s, v, result) || can_take(s, v, sharing_root(s, result))))
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

/* Whether nobody else reads what leads from `root` to `x`. */
static bool reads_alone(const Sharing *s, const Value *x, const Value *root) {
    while (read_by_one(s, x)) {
        if (x == root || !x->def || !is_integer(s, x->def) || !is_follower(x->def))
            return true;
        x = x->def->in[0];
    }
    return false;
}

/* Whether the given parameters of a result, `of_y`, can stand for the operand too, and for `of_x`
 * whose parameters that has: others that read it must not miss what they cut off. */
static bool can_take_back(const Sharing *s, const Node *n, const Value *of_x, const Value *of_y) {
    float min, max;
    if (n->def->quant.kind == QUANT_CLAMP || !can_take(s, of_x, of_y))
        return false;
    if (reads_alone(s, n->in[0], of_x))
        return true;
    const Quant *q = given(s, of_y);
    double scale = quant_scale(q, 0);
    int64_t zp = quant_zp(q, 0);
    return q->kind == QUANT_PARAMS && edit_range(of_x, &min, &max) &&
           (double)min >= (double)(quant_lo(q) - zp) * scale &&
           (double)max <= (double)(quant_hi(q) - zp) * scale;
}

static bool fills_anew(const Sharing *s, const Node *n) {
    OpCtx c = op_ctx(n, s->c->d);
    return n->def->quant.move.fills_anew && n->def->quant.move.fills_anew(&c);
}

/* Whether parameters mean the same on both sides of the node: scales along an axis do where it
 * stays, with all that stands along it. */
static bool keeps_params(const Sharing *s, const Node *n, const Quant *q) {
    OpCtx c = op_ctx(n, s->c->d);
    return !q || quant_is_per_tensor(q) || op_moved_quant(&c, n->def, q) == q;
}

static void share_followed(Sharing *s, Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        Value *y = n->out[i], *x = n->in[0];
        if (!y || !s->wanted[y->id])
            continue;
        Value *of_x = sharing_root(s, x), *of_y = sharing_root(s, y);
        bool ahead = !y->type.quant && (n->def->quant.kind != QUANT_CLAMP || covers(s, x, y)) &&
                     (alike(s, x, y) || can_take(s, of_y, of_x));
        if (of_x == of_y || !keeps_params(s, n, given(s, of_x)) ||
            !keeps_params(s, n, given(s, of_y)))
            continue;
        if (ahead && fills_anew(s, n) && !of_x->type.quant)
            s->root[of_x->id] = of_y; /* whose range has the new number, too */
        else if (ahead)
            s->root[of_y->id] = of_x;
        else if (can_take_back(s, n, of_x, of_y))
            s->root[of_x->id] = of_y;
    }
}

bool clamps_sum(const Sharing *s, const Node *n) {
    const Node *from = n->def->quant.kind == QUANT_CLAMP && n->in[0] ? n->in[0]->def : NULL;
    return from && s->sum[from->id];
}

/* One that a rule leaves float between integers, too: on one grid it is exact, on two grids what
 * passes is rounded twice. */
static bool follows(const Sharing *s, const Node *n) {
    return n->def && is_follower(n) && n->n_in && n->in[0] && n->n_out && n->out[0] &&
           !clamps_sum(s, n) &&
           (s->integer[n->id] || (s->wanted[n->in[0]->id] && s->wanted[n->out[0]->id]));
}

static void share_graph(Graph *g, void *ctx) {
    Sharing *s = ctx;
    for (Node *n = g->last; n; n = n->prev) {
        if (is_integer(s, n))
            share_joined(s, n);
        if (follows(s, n))
            share_clamped(s, n);
    }
    FOR_NODES(n, g) {
        if (follows(s, n))
            share_followed(s, n);
    }
}

/* Two rules of fixed parameters, or one that cannot serve both sides, leave integers that have to
 * be requantized where nothing is computed. */
static void tell_apart(Sharing *s, const Node *n, Value *x, Value *y) {
    Value *of_x = sharing_root(s, x), *of_y = sharing_root(s, y);
    const Quant *qx = given(s, of_x), *qy = given(s, of_y);
    Choice o = choice_of_value(s->c, s->uses, qy ? of_y : of_x);
    const SchemeRule *r = o.by[CHOICE_TYPE];
    if (of_x == of_y || !o.fixed || !r || (qx && qy && quant_equal(qx, qy)))
        return;
    diag_warning(s->c->d, r->loc,
                 "%s'%s' and '%s' do not share parameters: they are requantized at %s",
                 rule_source(s->c->d, r), diag_name(s->c->d, x->name), diag_name(s->c->d, y->name),
                 node_text(n));
}

static void tell_graph(Graph *g, void *ctx) {
    Sharing *s = ctx;
    FOR_NODES(n, g) {
        if (!is_integer(s, n) || !is_follower(n) ||
            (n->def->quant.kind == QUANT_CLAMP && !absorbs_clamp(s, n)))
            continue;
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i] && s->wanted[n->out[i]->id])
                tell_apart(s, n, n->in[0], n->out[i]);
    }
}

static void own_root(Value *v, void *root) {
    ((Value **)root)[v->id] = v;
}

Sharing sharing_new(Module *m, const PassContext *c, const Uses *uses, const bool *integer,
                    const bool *wanted, const bool *sum) {
    Sharing s = {.c = c, .uses = uses, .integer = integer, .wanted = wanted, .sum = sum};
    s.root = NEW_ARRAY(m->arena, Value *, m->n_values);
    module_each_value(m, own_root, s.root);
    return s;
}

void sharing_find(Sharing *s, Module *m) {
    module_each_graph(m, share_graph, s);
    module_each_graph(m, tell_graph, s);
}
