#include "passes/lower/integer_rule.h"
#include "passes/edit.h"

#include <math.h>

typedef struct Rule {
    Value *const *ints;
    size_t n;
    Diags *d;
} Rule;

/* The quantization under which the operand will reach the node. */
static const Quant *operand_quant(const Rule *t, const Value *v) {
    if (!v)
        return NULL;
    if (v->id < t->n && t->ints[v->id])
        return t->ints[v->id]->type.quant;
    return type_is_quantized(v->type) ? v->type.quant : edit_tilde(v);
}

static bool bias_fits(const Node *n, size_t channels) {
    size_t at = (size_t)n->def->quant.mac.bias;
    if (!at || n->n_in <= at || !n->in[at])
        return true;
    const Tensor *b = type_is_quantized(n->in[at]->type) && value_is_const(n->in[at])
                          ? n->in[at]->data
                          : edit_float_const(n->in[at]);
    return b && edit_bias_fits(b, channels);
}

static bool product_is_normal(const Quant *x, const Quant *w) {
    for (size_t i = 0; i < w->n_scale; i++)
        if (!isnormal(quant_scale(x, 0) * quant_scale(w, i)))
            return false;
    return true;
}

static const char *why_not_mac(const Rule *t, const Node *n) {
    const QuantRule *rule = &n->def->quant;
    const Quant *x = operand_quant(t, n->in[0]), *w = operand_quant(t, n->in[rule->mac.weight]);
    if (!x && !w)
        return "its operands are float";
    if (!x || !w)
        return x ? "its weights are float" : "its input is float, its weights alone are integers";
    const Quant *y = edit_tilde(n->out[0]);
    if (!quant_is_per_tensor(x))
        return "its input is quantized per axis, which one accumulator cannot hold";
    if (quant_is_blocked(w))
        return "its weights are quantized in blocks, which one accumulator cannot hold";
    OpCtx c = op_ctx(n, t->d);
    int axis = quant_weight_axis(rule, &c);
    const char *why = quant_axis_refusal(n, w);
    if (why)
        return why;
    if (!product_is_normal(x, w))
        return "the product of its scales is too small or too large for a float";
    Type wt = n->in[rule->mac.weight]->type;
    if (axis >= 0 && axis < wt.rank && !bias_fits(n, (size_t)wt.dims[axis].value))
        return "its bias is not a constant of one number a channel";
    return y && !quant_is_per_tensor(y) ? "its result is quantized per axis" : NULL;
}

static const char *why_not_compute(const Rule *t, const Node *n) {
    const Quant *y = edit_tilde(n->out[0]);
    if (!y)
        return "its result is float";
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        const Quant *q = operand_quant(t, n->in[i]);
        if (!q)
            return "an operand is float";
        if (!quant_is_per_tensor(q))
            return "an operand is quantized per axis";
    }
    if (!quant_is_per_tensor(y))
        return "its result is quantized per axis";
    OpCtx c = op_ctx(n, t->d);
    return n->def->quant.integer_refusal
               ? n->def->quant.integer_refusal(&c, operand_quant(t, n->in[0]))
               : NULL;
}

static const char *why_not_move(const Rule *t, const Node *n) {
    const Quant *x = operand_quant(t, n->in[0]);
    if (!x)
        return "its operand is float";
    OpCtx c = op_ctx(n, t->d);
    if (!quant_is_per_tensor(x) && !op_moved_quant(&c, n->def, x))
        return "the axis its operand is quantized along does not survive it";
    const char *why = n->def->quant.integer_refusal ? n->def->quant.integer_refusal(&c, x) : NULL;
    const Quant *y = edit_tilde(n->out[0]);
    bool rounds =
        y && quant_is_per_tensor(x) && quant_equal(x, y) && n->def->quant.move.fills_anew &&
        n->def->quant.move.fills_anew(&c); /* its result is rounded to that grid as it is */
    if (why && !rounds)
        return why;
    return y ? NULL : "its result is float";
}

static bool is_stored(const Node *n, size_t i) {
    return i < 32 && (n->def->quant.stores.operands >> i & 1);
}

static bool stores_weights(const Rule *t, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (is_stored(n, i) && operand_quant(t, n->in[i]))
            return true;
    return false;
}

static bool all_results_tilde(const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !(edit_tilde(n->out[i]) && quant_is_per_tensor(edit_tilde(n->out[i]))))
            return false;
    return true;
}

/* All of weights, data and results, whichever are there; what else the weights have to be the
 * operator says. */
static const char *why_not_several(const Rule *t, const Node *n) {
    const Quant *x = operand_quant(t, n->in[0]);
    OpCtx c = op_ctx(n, t->d);
    const char *why = n->def->quant.integer_refusal(&c, x);
    if (!x && stores_weights(t, n))
        return "its input is float, its weights alone are integers";
    for (size_t i = 0; i < n->n_in && !why; i++) {
        const Quant *q = operand_quant(t, n->in[i]);
        if (n->in[i] && is_stored(n, i) && !q)
            why = op_prefers_float(n); /* its weights would be integers else */
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && !(q && quant_is_per_tensor(q)))
            why = node_strf(n, q ? "'" STR_FMT "' is quantized per axis" : "'" STR_FMT "' is float",
                            STR_ARG(n->in[i]->name));
    }
    return why || all_results_tilde(n) ? why : "a result is float, or quantized per axis";
}

const char *integer_rule(const Node *n, Value *const *ints, size_t n_ints, Diags *d) {
    const Rule rule = {ints, n_ints, d}, *t = &rule;
    if (!n->def || n->n_out < 1 || (!n->out[0] && !n->def->quant.all_results))
        return "qxc does not know this operator";
    switch (n->def->quant.kind) {
    case QUANT_NEVER:
        return stores_weights(t, n) ? "its input is float, its weights alone are integers"
                                    : "this operator has no integer form";
    case QUANT_MAC: return why_not_mac(t, n);
    case QUANT_MOVE:
    case QUANT_ORDER: return why_not_move(t, n);
    default: return n->def->quant.all_results ? why_not_several(t, n) : why_not_compute(t, n);
    }
}
