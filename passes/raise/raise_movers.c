/* What hands numbers on takes its operand's quantization: movers, Relu, Concat. */
#include "ir/ops/qop.h"
#include "passes/raise/raise_operators.h"
#include "passes/target/legal.h"

/* Recurrent layers do where their weights and all results are integers, too; what ranks numbers
 * will, once order-integers lets it. */
static bool computes_on_integers(const Node *n) {
    const QuantRule *q = n->def ? &n->def->quant : NULL;
    return q && ((q->kind != QUANT_NEVER && !q->stores.operands) || n->def->ranks);
}

/* Somebody can do with the integers of its result, as whoever dequantizes what the graph returns.
 */
static bool is_wanted(const Raise *r, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        const Use *uses;
        size_t count = n->out[i] ? uses_of(r->uses, n->out[i], &uses) : 0;
        if (count && !elem_is_float(n->out[i]->type.elem))
            return true; /* ArgMax, TopK: indices */
        for (size_t k = 0; k < count; k++) {
            const Node *user = uses[k].node;
            if (user ? is_own_quantize(user) || computes_on_integers(user)
                     : !node_is(n, "Identity")) /* which computes nothing */
                return true;
        }
    }
    return false;
}

/* The float companion of a mover's result, for those who want one. */
static Value *float_result(Raise *r, Node *n, Value *y, Type real) {
    Node *d = build_node(&r->b, n, "DequantizeLinear", STR_NONE, OPERANDS(y));
    node_add_output(d, 0, derived_name(&r->b, y->name, "_DequantizeLinear_Output"), real);
    op_resolve(d, r->b.d);
    node_insert_after(n, d);
    return d->out[0];
}

static void requantize(Raise *r, Node *q, Value *x) {
    node_becomes(q, r->b.pass);
    q->domain = STR("qxc");
    q->op = STR("Requantize");
    q->in[0] = x;
    op_resolve(q, r->b.d);
}

/* y, so far float, takes its operand's quantization: those who quantized it requantize, or have
 * what they want; the others get a float companion. */
static void move_result(Raise *r, Node *n, size_t i, const Quant *q) {
    Value *y = n->out[i], *real = NULL;
    Type type = y->type;
    const Use *uses;
    size_t count = uses_of(r->uses, y, &uses);
    operator_set_quantized(y, q);
    for (size_t k = 0; k < count; k++) {
        Node *user = uses[k].node;
        if (user && user->in[uses[k].index] != y)
            continue;
        if (user && is_own_quantize(user) &&
            user->out[0]->type.quant->kind != QUANT_DYNAMIC) { /* which follows from the floats */
            bool same = operator_is_within(&r->b, q, user->out[0]->type.quant);
            bool returned =
                uses_is_output(r->uses, user->out[0]); /* a branch of If returns its own */
            if (same && !(returned && (uses_is_output(r->uses, y) || user->graph != n->graph)))
                operator_absorb(r, user, y);
            else
                requantize(r, user, y);
            continue;
        }
        if (!real)
            real = float_result(r, n, y, type);
        if (user) {
            user->in[uses[k].index] = real;
        } else {
            Str name = y->name; /* the interface keeps its name */
            uses[k].graph->out[uses[k].index] = real;
            y->name = real->name;
            real->name = name;
            real->declared = y->declared;
            y->declared = false;
        }
    }
}

/* Everyone who reads y wants it rounded to `q`. */
static bool all_quantize_to(const Raise *r, const Value *y, const Quant *q) {
    const Use *uses;
    size_t count = uses_of(r->uses, y, &uses);
    for (size_t k = 0; k < count; k++) {
        const Node *user = uses[k].node;
        if (!user || !is_own_quantize(user) ||
            !operator_is_within(&r->b, q, user->out[0]->type.quant))
            return false;
    }
    return true;
}

/* The largest of no elements is infinite: the end of a range, which another scale has elsewhere. */
static const char *infinite(const Raise *r, const OpCtx *c, const Node *n, const Quant *q) {
    bool (*of_none)(const OpCtx *) = n->def->quant.of_none;
    return of_none && of_none(c) && !all_quantize_to(r, n->out[0], q)
               ? "of no elements, which it may have, its result is infinite"
               : NULL;
}

void raise_mover(Raise *r, Node *n) {
    Value *x = n->n_in ? raise_source(n->in[0]) : NULL;
    if (!x || x == n->in[0] || !quant_rule_is_data(&n->def->quant, 0) || !is_wanted(r, n))
        return;
    OpCtx c = op_ctx(n, NULL);
    const Quant *q = op_moved_quant(&c, n->def, x->type.quant);
    if (!q || q->kind != QUANT_PARAMS || elem_bits(q->storage) > 16)
        return;
    const char *why =
        n->def->quant.integer_refusal ? n->def->quant.integer_refusal(&c, x->type.quant) : NULL;
    if (!why)
        why = infinite(r, &c, n, q);
    if (why) {
        operator_keep_float(r, n, why);
        return;
    }
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->type.kind == TYPE_NONE) {
            operator_keep_float(r, n, "the type of its result is not known");
            return;
        }
    n->in[0] = x;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && elem_is_float(n->out[i]->type.elem) && !type_is_quantized(n->out[i]->type))
            move_result(r, n, i, q);
}

void raise_kept(Raise *r, Node *n) {
    const Quant *q = NULL;
    bool wanted = operator_has_one_result(n) && is_wanted(r, n);
    for (size_t i = 0; wanted && i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        Value *x = raise_source(n->in[i]);
        if (!x || x == n->in[i] || x->type.quant->kind != QUANT_PARAMS ||
            !quant_is_per_tensor(x->type.quant) || elem_bits(x->type.elem) > 16 ||
            (q && !quant_equal(q, x->type.quant)))
            return;
        q = x->type.quant;
    }
    bool cuts = n->def->quant.kind == QUANT_CLAMP;
    if (!q || (cuts && !n->def->quant.cuts_at_zero && !clamp_is_noop(n, q)))
        return;
    if (operator_reads_integers(r, n))
        move_result(r, n, 0, q);
}
