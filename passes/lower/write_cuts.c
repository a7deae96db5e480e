/* Quantizers let a Relu or Clip go where integers end at its bounds: uint8 of zero point 0 cuts off
 * what is negative. Before such a type goes, or another takes its place, the operator is written
 * again. */
#include "passes/edit.h"
#include "passes/quant_build.h"

#include <math.h>

typedef struct Cut { /* a result whose integers end where a Relu or a Clip would */
    Node *n;
    float high; /* INFINITY of a Relu */
} Cut;

typedef struct Cuts {
    Module *m;
    PassContext *c;
    QuantBuild b;
    Uses *uses;
    bool *negative; /* by id of a node that was looked at: its result may be below 0 */
    bool *never;    /* ... is known never to be, whatever its type says */
    Cut *cuts;
    size_t n_cuts, cap_cuts;
} Cuts;

/* ---- where integers end ---- */

/* What an activation is quantized to, be it true or `~`; NULL where no end is that of all. */
static const Quant *grid_of(const Value *v) {
    const Quant *q =
        v && v->type.kind == TYPE_TENSOR && v->kind != VALUE_CONST ? v->type.quant : NULL;
    bool ends = q && q->kind == QUANT_PARAMS && quant_is_integers(q) && quant_is_per_tensor(q);
    return ends && elem_bits(q->storage) <= 16 ? q : NULL;
}

static bool is_never_negative(const Value *v) {
    const Quant *q = grid_of(v);
    return q && quant_zp(q, 0) == quant_lo(q);
}

/* The end of the integers where that is 6, as Relu6 has it. */
static float high_end(const Quant *q) {
    double end = (double)quant_scale(q, 0) * (double)(quant_hi(q) - quant_zp(q, 0));
    return fabs(end - 6) <= 6 * 0x1p-20 ? 6 : INFINITY;
}

static bool is_known_never(const Cuts *u, const Value *v) {
    return is_never_negative(v) || (v->def && u->never[v->def->id]);
}

/* Whether operands that are never negative, as all of `n` are, make such a result. */
static bool keeps_sign(const Cuts *u, const Node *n) {
    const QuantRule *r = &n->def->quant;
    bool one = rule_single_data(n) >= 0;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(r, i) && !is_known_never(u, n->in[i]))
            return false;
    return r->adds || r->scaled.multiplies || (one && r->scaled.homogeneous);
}

static bool cuts(const Node *n, float high) {
    float lo, hi;
    if (!n->def || n->def->quant.kind != QUANT_CLAMP || !n->def->quant.clamp)
        return false;
    OpCtx c = op_ctx(n, NULL);
    return n->def->quant.clamp(&c, &lo, &hi) && lo >= 0 && hi <= high;
}

static bool is_cut_behind(const Cuts *u, const Value *y, float high) {
    const Use *use;
    size_t n = uses_of(u->uses, y, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || !cuts(use[i].node, high))
            return false;
    return n > 0;
}

/* What comes in from outside is what it is. */
static bool value_may_be(const Cuts *u, const Value *v) {
    if (!v || grid_of(v))
        return v && !is_never_negative(v);
    return v->def && u->negative[v->def->id];
}

/* Whether a result may be below 0 before it is rounded, where that is known of its operands. */
static bool may_be_negative(const Cuts *u, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    if (!r || r->fixed_output || (r->least == 0 && r->most > 0) || cuts(n, INFINITY))
        return false;
    if (!keeps_integers(n) && node_conversion(n) == CONVERT_NONE)
        return !keeps_sign(u, n);
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && (quant_rule_is_data(r, i) || i == 0) && value_may_be(u, n->in[i]))
            return true;
    return false;
}

/* By the operator: what it ends at, or what it makes of its operands. */
static bool is_never_made(const Cuts *u, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    if (!r)
        return false;
    bool hands_on = keeps_integers(n) && n->n_in == 1 && n->in[0] && is_known_never(u, n->in[0]);
    return cuts(n, INFINITY) || (r->least == 0 && r->most > 0) || hands_on || keeps_sign(u, n);
}

static void look_for_cut(Cuts *u, Node *n) {
    const Value *y = n->n_out == 1 ? n->out[0] : NULL;
    if (!y || !is_never_negative(y))
        return;
    float high = high_end(y->type.quant);
    bool beyond = u->negative[n->id] || (high < INFINITY && n->def && n->def->quant.adds);
    if (!beyond || is_cut_behind(u, y, high))
        return;
    Cut cut = {n, high};
    ARENA_PUSH(u->m->arena, u->cuts, u->n_cuts, u->cap_cuts, cut);
}

/* `n` cuts its first operand off at 0 and at `high`. */
static void become_cut(Cuts *u, Node *n, float high) {
    bool relu = high == INFINITY;
    n->op = relu ? STR("Relu") : STR("Clip");
    if (!relu && module_opset(u->m, STR("")) >= 11) {
        set_operand(n, 1, build_float(&u->b, n->out[0]->name, "_min", 0));
        set_operand(n, 2, build_float(&u->b, n->out[0]->name, "_max", high));
    } else if (!relu) {
        node_set_float(n, "min", 0);
        node_set_float(n, "max", high);
    }
    op_resolve(n, u->c->d);
}

static void write_cut(Cuts *u, const Cut *cut) {
    Value *y = cut->n->out[0];
    Node *to = build_node(&u->b, cut->n, "Relu", STR_NONE, OPERANDS(y));
    node_follow(cut->n, 0, to, derived_name(&u->b, y->name, "_before"), y->type);
    become_cut(u, to, cut->high);
}

static void look_graph(Graph *g, void *ctx) {
    Cuts *u = ctx;
    FOR_NODES(n, g) {
        u->negative[n->id] = may_be_negative(u, n);
        u->never[n->id] = is_never_made(u, n);
        look_for_cut(u, n);
    }
}

bool pass_write_cuts(Module *m, PassContext *c) {
    Cuts u = {.m = m, .c = c, .b = quant_build_new(m, c, "write-cuts"), .uses = uses_new(m)};
    u.negative = NEW_ARRAY(m->arena, bool, m->n_nodes);
    u.never = NEW_ARRAY(m->arena, bool, m->n_nodes);
    module_each_graph(m, look_graph, &u);
    for (size_t i = 0; i < u.n_cuts; i++)
        write_cut(&u, &u.cuts[i]);
    return true;
}
