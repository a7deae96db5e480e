/* See passes/quantize/decide.h: why a node stays float. It can be integer where its operator has an
 * integer meaning, where its operands and results have statistics or are constants, and where
 * neither the scheme nor the target's page has something against it. */
#include "ir/verify_stat.h"
#include "passes/edit.h"
#include "passes/quantize/decide.h"
#include "passes/quantize/masks.h"
#include "passes/quantize/placement.h"
#include "passes/quantize/singular.h"
#include "passes/split_products.h"

/* A product has one weight, a recurrent layer two. */
bool takes_weight(const Node *n, size_t input) {
    const QuantRule *q = &n->def->quant;
    return q->kind == QUANT_MAC
               ? input == (size_t)q->mac.weight
               : q->kind != QUANT_NEVER && input < 32 && (q->stores.operands >> input & 1);
}

bool is_weight(const Node *n, size_t input) {
    return takes_weight(n, input) && edit_float_const(n->in[input]);
}

Choice choice_of(const Decide *d, const Value *v) {
    return choice_of_value(d->c, d->uses, v);
}

/* NULL when the range of this value is known, else what is wrong. */
static const char *why_no_range(const Decide *d, const Value *v) {
    float min, max;
    bool cut;
    if (v->type.quant || masked_range(d->uses, v, &min, &max, &cut) || choice_of(d, v).fixed)
        return NULL;
    if (edit_float_const(v))
        return "a constant of it holds NaN or infinity";
    const char *why = v->stat ? stat_why_no_range(v->stat) : NULL;
    return why ? arena_strf(d->m->arena, "its statistics are not a finite range: %s", why).s
               : "there are no statistics for it";
}

/* What 8 bits would round to 0, and something breaks there; a rule or -integer-only asks anyway. */
static const Node *breaks_at_zero(const Decide *d, const Value *v) {
    return v->type.quant || d->c->no_floats || choice_of(d, v).fixed ? NULL
                                                                     : zero_breaks(d->uses, v);
}

static const char *why_operand(const Decide *d, const Node *n, size_t i) {
    const Value *v = n->in[i];
    if (v->type.kind != TYPE_TENSOR)
        return "the type of its operand is not known";
    if (type_real_elem(v->type) != ELEM_FLOAT)
        return "its operand is not float";
    if (is_weight(n, i))
        return choice_of_weight(d->c, n, v).is_float ? "its weights stay float as asked"
                                                     : why_no_range(d, v);
    if (!v->type.quant && choice_of(d, v).is_float) {
        const char *wrong = choice_faulty(d->c, v);
        return wrong ? node_strf(n, "its operand comes of " STR_FMT ", which stays float: %s",
                                 STR_ARG(v->def->op), wrong)
                     : "an operand stays float as asked";
    }
    const Node *broken = breaks_at_zero(d, v);
    return broken ? node_strf(n,
                              "an operand, never 0, would be rounded to 0, where " STR_FMT
                              " is infinite",
                              STR_ARG(broken->op))
                  : why_no_range(d, v);
}

/* Whether the value goes out of the graph and nowhere else, be it moved before. */
static bool only_goes_out(const Decide *d, const Value *v) {
    for (;;) {
        const Use *use;
        size_t n = uses_of(d->uses, v, &use), nodes = 0;
        const Node *reader = NULL;
        for (size_t i = 0; i < n; i++)
            if (use[i].node) {
                nodes++;
                reader = use[i].index == 0 ? use[i].node : NULL;
            }
        if (!nodes)
            return n && v->graph == d->m->graph;
        if (n != 1 || !reader || !reader->def || reader->def->quant.kind != QUANT_MOVE ||
            reader->n_out != 1 || !reader->out[0])
            return false;
        v = reader->out[0];
    }
}

bool has_real_kernel(const Decide *d, const Node *n) {
    const TargetFusion *f = target_fusion(d->c->target, n);
    return f && f->real && n->n_in && n->in[0] && elem_bits(choice_of(d, n->in[0]).storage) == 8;
}

/* A product has such a kernel, or the operator has as many numbers to read as to give. */
static bool costs_no_more_in_float(const Decide *d, const Node *n) {
    if (!n->n_in || !n->in[0])
        return false;
    if (n->def->quant.kind == QUANT_MAC)
        return has_real_kernel(d, n);
    return n->def->quant.kind == QUANT_COMPUTE && n->n_out == 1 &&
           type_same_shape(n->in[0]->type, n->out[0]->type);
}

/* For a runtime alone: what goes out as float is not rounded to integers before. A recipe says
 * itself where quantizers stand. */
static bool leaves_as_float(const Decide *d, const Value *v) {
    const Node *n = v->def;
    if (d->recipe != RECIPE_NONE || !d->c->runtime_alone || !d->c->float_outputs ||
        d->c->no_floats || !n || !n->def || choice_to_keep(d->c, n) ||
        !costs_no_more_in_float(d, n))
        return false;
    Choice o = choice_of(d, v);
    return !o.fixed && !choice_said(&o, CHOICE_TYPE) && only_goes_out(d, v);
}

/* A product can be left in float. */
bool stays_float(const Decide *d, const Value *v) {
    return !v->type.quant && (choice_of(d, v).is_float || (v->def && d->float_result[v->def->id]) ||
                              breaks_at_zero(d, v) || leaves_as_float(d, v));
}

static const char *why_one_result(const Decide *d, const Node *n, const Value *y) {
    if (!stays_float(d, y))
        return why_no_range(d, y);
    if (n->def->quant.kind == QUANT_MAC)
        return NULL;
    const Node *broken = breaks_at_zero(d, y);
    return broken                  ? node_strf(n,
                                               "its result, never 0, would be rounded to 0, where " STR_FMT
                                               " is infinite",
                                               STR_ARG(broken->op))
           : leaves_as_float(d, y) ? "its result goes out as float"
                                   : "its result stays float as asked";
}

/* The first stands for all, but where each has its own: that may lack the first. */
const char *why_result(const Decide *d, const Node *n) {
    size_t results = n->def->quant.all_results ? n->n_out : n->n_out > 0;
    bool any = false;
    for (size_t i = 0; i < results; i++) {
        const char *why = n->out[i] ? why_one_result(d, n, n->out[i]) : NULL;
        any = any || n->out[i];
        if (why)
            return why;
    }
    return any ? NULL : "nobody asks for its result";
}

/* For a runtime that would compute this operator between conversions. Between two that are integer
 * there it is quantized all the same: they want its operand and its result. */
static const char *why_no_kernel(const Decide *d, const Node *n) {
    if (!d->c->runtime_alone || n->def->quant.kind != QUANT_COMPUTE || choice_to_keep(d->c, n) ||
        d->c->no_floats || (n->n_out && n->out[0] && choice_of(d, n->out[0]).fixed))
        return NULL;
    bool wide = n->def->quant.curve && n->in[0] && elem_bits(choice_of(d, n->in[0]).storage) > 8;
    if (!target_fusion(d->c->target, n) || wide)
        return node_strf(n,
                         "%s has no integer kernel for it; -only=... and -target=onnx quantize it",
                         d->c->target->runtime);
    return NULL;
}

/* What the target's page has against it, which a rule of the user's does not change where it would
 * be wrong. */
static const char *why_target(const Decide *d, const Node *n) {
    const char *wrong = n->n_out && n->out[0] ? choice_faulty(d->c, n->out[0]) : NULL;
    return wrong ? wrong : why_not_placed(d, n);
}

const char *why_never_integer(const Node *n) {
    if (!n->def)
        return "qxc does not know this operator";
    if (n->call)
        return "it stays one operator where nothing within becomes integers";
    if (n->def->quant.kind != QUANT_NEVER)
        return NULL;
    if (n->def->quant.stores.operands)
        return "this operator has no integer form (-weight-only stores its weights as integers)";
    const char *whole = whole_refusal(n);
    return whole ? whole : "this operator has no integer form";
}

/* It could be integer, and is better left float; NULL where that is not so, or nobody wants it. */
const char *why_preferred(const Decide *d, const Node *n) {
    const char *why = why_never_integer(n) || d->c->no_floats ? NULL : op_prefers_float(n);
    return why && !choice_why_kept(d->c, n) && !choice_to_keep(d->c, n) ? why : NULL;
}

/* NULL when the node can be integer, else why not. */
const char *why_float(const Decide *d, const Node *n) {
    const char *why = why_never_integer(n);
    if (!why)
        why = choice_why_kept(d->c, n);
    if (!why)
        why = why_preferred(d, n);
    if (!why)
        why = why_target(d, n);
    if (!why)
        why = why_no_kernel(d, n);
    for (size_t i = 0; !why && i < n->n_in; i++)
        if (n->in[i] && (quant_rule_is_data(&n->def->quant, i) || takes_weight(n, i)))
            why = takes_weight(n, i) && n->def->quant.stores.operands && !is_weight(n, i)
                      ? "its weights are not a float constant"
                      : why_operand(d, n, i);
    if (!why)
        why = why_result(d, n);
    if (why)
        return why;
    Type few[OP_FEW];
    OpCtx c = op_ctx_few(n, few, d->c->d);
    why = n->def->quant.integer_refusal ? n->def->quant.integer_refusal(&c, NULL) : NULL;
    if (why &&
        !(d->c->no_floats && n->def->quant.move.fills_anew && n->def->quant.move.fills_anew(&c)))
        return why;
    size_t bias = n->def->quant.kind == QUANT_MAC ? (size_t)n->def->quant.mac.bias : 0;
    const Value *b = bias ? node_input(n, bias) : NULL;
    if (!b || edit_is_finite(b))
        return NULL;
    return edit_float_const(b) ? "its bias holds NaN or infinity"
                               : "its bias is not a float constant";
}

/* Float in, and weights that are not. */
bool only_weights(const Decide *d, const Node *n) {
    if (!n->def || n->def->quant.kind != QUANT_MAC || !n->in[0] || choice_why_kept(d->c, n))
        return false;
    size_t w = (size_t)n->def->quant.mac.weight;
    return node_input(n, w) && is_weight(n, w) && !why_operand(d, n, w) && !n->in[0]->type.quant &&
           choice_of(d, n->in[0]).is_float;
}
