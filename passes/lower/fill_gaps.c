/* Floats between integers get the types that follow from their neighbours, where a model that came
 * quantized has to be integers alone.
 *
 * What only moves, orders or cuts numbers is the same behind a QuantizeLinear as before it:
 * rounding keeps the order of numbers, so Q(max(a, b)) = max(Q(a), Q(b)). So a QuantizeLinear goes
 * up through these, bit for bit, and a DequantizeLinear down. An operator that computes between
 * DequantizeLinear and QuantizeLinear computes on integers; its float constants are rounded to 16
 * bits, which is told. Functions whose results lie in a known range (Softmax, Sigmoid) get that
 * range, which is told, too. */
#include <math.h>

#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/lower/fill_affine.h"
#include "passes/lower/integer_rule.h"
#include "passes/params.h"
#include "passes/quant_build.h"

enum { FEW = 16 }; /* operands */

typedef struct Gaps {
    PassContext *c;
    Module *m;
    Uses *uses;
    QuantBuild b;
    bool changed;
    Node **read_past; /* conversions that nobody may read any more */
    size_t n_read_past, cap_read_past;
    bool *filled; /* by node id: what a pass said of it is over */
} Gaps;

static bool is_float_value(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && v->type.elem == ELEM_FLOAT && !v->type.quant;
}

/* One scale, which stands in the file: that of dynamic values is known as they are computed. */
static bool has_scale(const Quant *q) {
    return q->kind == QUANT_PARAMS && quant_is_per_tensor(q);
}

/* The only reader of what the node yields, where that is a QuantizeLinear of one scale. */
static Node *quantizer_behind(const Gaps *g, const Node *n) {
    const Use *use;
    if (n->n_out != 1 || !n->out[0] || uses_of(g->uses, n->out[0], &use) != 1)
        return NULL;
    Node *reader = use->node;
    bool fits = reader && reader->graph == n->graph && is_own_quantize(reader) &&
                has_scale(reader->out[0]->type.quant);
    return fits ? reader : NULL;
}

/* The integers that the value was made of, or NULL. */
static Value *integers_of(const Value *v) {
    const Node *n = v && v->kind == VALUE_NODE ? v->def : NULL;
    return n && is_own_dequantize(n) && has_scale(n->in[0]->type.quant) ? n->in[0] : NULL;
}

static Value *const_on(Gaps *g, const Value *v, const Quant *q) {
    Value *ints = build_shared(&g->b, v->graph, v->name, "_quantized", type_quantized(v->type, q),
                               const_quantize(g->m->arena, v->data, q));
    ints->from = v->from;
    return ints;
}

/* ---- what keeps the order of numbers ---- */

static bool keeps_order(const Node *n) {
    return n->n_out == 1 && keeps_integers(n) && !node_interpolates(n) && !fill_operand(n);
}

static Value *quantized(Gaps *g, Node *user, Value *v, const Quant *q) {
    if (edit_float_const(v))
        return const_on(g, v, q);
    Value *ints = integers_of(v);
    if (ints && quant_equal(ints->type.quant, q))
        return ints;
    Node *n = build_node_for(&g->b, v, "QuantizeLinear", STR_NONE, OPERANDS(v));
    return build_before(&g->b, user, n, v->name, "_quantized", type_quantized(v->type, q));
}

static bool all_floats(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && !is_float_value(n->in[i]))
            return false;
    return true;
}

static void move_up(Gaps *g, Node *n, Node *quantizer) {
    const Quant *q = quantizer->out[0]->type.quant;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i))
            n->in[i] = quantized(g, n, n->in[i], q);
    node_take_result(n, 0, quantizer->out[0]);
    node_remove(quantizer);
    g->changed = g->filled[n->id] = true;
}

/* What the node makes is dequantized behind it. */
static void dequantize_behind(Gaps *g, Node *n, const Quant *q) {
    Value *y = n->out[0];
    Node *back = build_node_for(&g->b, y, "DequantizeLinear", STR_NONE, NULL, 1);
    node_follow(n, 0, back, derived_name(&g->b, y->name, "_quantized"), type_quantized(y->type, q));
    op_resolve(back, g->c->d);
    g->changed = g->filled[n->id] = true;
}

/* The quantization under which all that the node moves came; NULL where there is none. */
static const Quant *came_as(const Node *n) {
    const Quant *q = NULL;
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        const Value *ints = integers_of(n->in[i]);
        if (!ints || (q && !quant_equal(q, ints->type.quant)))
            return NULL;
        q = ints->type.quant;
    }
    return q;
}

/* Bounds need not be numbers of the quantization. */
static bool moves_down(const Node *n) {
    return keeps_order(n) && n->def->quant.kind != QUANT_CLAMP && came_as(n);
}

static void move_down(Gaps *g, Node *n) {
    const Quant *q = came_as(n);
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i))
            n->in[i] = integers_of(n->in[i]);
    dequantize_behind(g, n, q);
}

/* ---- what computes ---- */

static const Quant *fine_quant(Gaps *g, const Value *v) {
    float min, max, scale;
    int64_t zp;
    if (!edit_range(v, &min, &max))
        return NULL;
    IntRange r = params_range(ELEM_INT16, true, false);
    params_from_minmax(min, max, r, true, false, &scale, &zp);
    return quant_per_tensor(g->m->arena, ELEM_INT16, scale, zp);
}

/* Whether a number other than 0 becomes 0: nothing to divide by. */
static bool loses_numbers(const Value *v, const Quant *q) {
    const Tensor *t = v->data;
    for (size_t i = 0; i < t->count; i++)
        if (tensor_float(t, i) != 0 && fabs(tensor_float(t, i)) < (double)quant_scale(q, 0) / 2)
            return true;
    return false;
}

/* Operands as integers, where all of them are or can be; the first that is computed is of integers
 * already, as nothing else says how fine the result is. */
static bool integer_operands(Gaps *g, const Node *n, Value **to) {
    bool any = false;
    for (size_t i = 0; i < n->n_in; i++) {
        to[i] = n->in[i];
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        const Value *v = n->in[i];
        const Quant *q = edit_float_const(v) ? fine_quant(g, v) : NULL;
        if (q && (n->def->quant.singular >> i & 1) && loses_numbers(v, q))
            q = NULL;
        if (type_is_quantized(v->type) || integers_of(v))
            any = true;
        if (!type_is_quantized(v->type))
            to[i] = integers_of(v) ? integers_of(v) : q ? const_on(g, v, q) : NULL;
        if (!to[i])
            return false;
    }
    return any;
}

/* `was`: what the node read before. */
static void tell_constants(Gaps *g, const Node *n, Value *const *was) {
    for (size_t i = 0; i < n->n_in; i++)
        if (edit_float_const(was[i]) && quant_rule_is_data(&n->def->quant, i))
            diag(g->c->d, DIAG_REMARK, n->loc,
                 "%s computes on integers, its constant '%s' on 16 bits", node_text(n),
                 diag_name(g->c->d, was[i]->name));
}

/* The node reads integers and yields those of `q` in place of floats, where it has a kernel for
 * that. */
static bool compute(Gaps *g, Node *n, const Quant *q) {
    Value *to[FEW], *was[FEW];
    Type before = n->out[0]->type;
    if (n->n_in > FEW || !integer_operands(g, n, to))
        return false;
    memcpy(was, n->in, n->n_in * sizeof *was);
    memcpy(n->in, to, n->n_in * sizeof *to);
    n->out[0]->type = type_tilde(before, q);
    const char *why = integer_rule(n, NULL, 0, g->m->mute);
    n->out[0]->type = before;
    if (why) {
        memcpy(n->in, was, n->n_in * sizeof *was);
        return false;
    }
    tell_constants(g, n, was);
    g->changed = g->filled[n->id] = true;
    return true;
}

/* ---- results of a known range ---- */

static const Quant *known_range(Gaps *g, const Node *n, ElemType storage) {
    const QuantRule *r = &n->def->quant;
    OpCtx c = op_ctx(n, g->m->mute);
    float scale;
    int64_t zp;
    if (r->fixed_output && r->fixed_output(&c, storage, &scale, &zp))
        return quant_per_tensor(g->m->arena, storage, scale, zp);
    if (!(r->least < r->most))
        return NULL;
    scale = (r->most - r->least) / (float)(elem_max(storage) - elem_min(storage) + 1);
    zp = elem_min(storage) - (int64_t)(r->least / scale);
    return quant_per_tensor(g->m->arena, storage, scale, zp);
}

/* What only goes out. Others may tell numbers apart that one step holds (ArgMin of a Softmax). */
static bool only_goes_out(const Gaps *g, const Value *v) {
    const Use *use;
    size_t n = uses_of(g->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (use[i].node)
            return false;
    return n > 0;
}

/* Its result is integers of that range, and float behind a DequantizeLinear. */
static void bound(Gaps *g, Node *n) {
    const Value *x = n->n_in ? integers_of(n->in[0]) : NULL;
    if (!x || !is_float_value(n->out[0]) || !only_goes_out(g, n->out[0]))
        return;
    const Quant *q = known_range(g, n, x->type.quant->storage);
    if (!q || !compute(g, n, q))
        return;
    diag(g->c->d, DIAG_REMARK, n->loc, "%s yields integers of its known range, whose step is %g",
         node_text(n), (double)quant_scale(q, 0));
    dequantize_behind(g, n, q);
}

/* ---- all of it ---- */

static void note_operands(Gaps *g, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (integers_of(n->in[i]))
            ARENA_PUSH(g->m->arena, g->read_past, g->n_read_past, g->cap_read_past, n->in[i]->def);
}

static void look(Gaps *g, Node *n) {
    if (!n->def || n->n_out != 1 || !n->out[0] || !is_float_value(n->out[0]))
        return;
    QuantClass kind = n->def->quant.kind;
    Node *quantizer = quantizer_behind(g, n);
    Value *x = n->n_in ? integers_of(n->in[0]) : NULL;
    note_operands(g, n);
    if (quantizer && keeps_order(n) && all_floats(n)) {
        move_up(g, n, quantizer);
    } else if (moves_down(n)) {
        move_down(g, n);
    } else if (quantizer && x && kind != QUANT_COMPUTE && fill_affine(&g->b, n, x, quantizer)) {
        g->changed = g->filled[n->id] = true;
    } else if (quantizer && kind == QUANT_COMPUTE) {
        if (!compute(g, n, quantizer->out[0]->type.quant))
            return;
        node_take_result(n, 0, quantizer->out[0]);
        node_remove(quantizer);
    } else if (kind == QUANT_COMPUTE) {
        bound(g, n);
    }
}

static void look_graph(Graph *graph, void *ctx) {
    for (Node *n = graph->last, *before; n; n = before) {
        before = n->prev;
        look(ctx, n);
    }
}

/* One round leaves what stands behind what it changed: what reads a value is known of the round's
 * beginning. */
bool pass_fill_gaps(Module *m, PassContext *c) {
    Gaps g = {.c = c,
              .m = m,
              .b = quant_build_new(m, c, "fill-gaps"),
              .changed = true,
              .filled = NEW_ARRAY(m->arena, bool, m->n_nodes)};
    while (g.changed) {
        Arena *outer = scratch_begin(m);
        g.changed = false;
        g.uses = uses_new(m);
        module_each_graph(m, look_graph, &g);
        scratch_end(m, outer);
    }
    pass_forget_remarks(c, g.filled);
    edit_drop_unread(m, g.read_past, g.n_read_past);
    edit_sweep(m);
    return true;
}
