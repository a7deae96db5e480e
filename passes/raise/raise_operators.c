/* An operator whose operands come from DequantizeLinear and whose result goes to one QuantizeLinear
 * computes on the quantized types itself: that is what an operator on quantized types means. */
#include "exec/fold.h"
#include "ir/ops/qop.h"
#include "passes/edit.h"
#include "passes/target/legal.h"
#include "passes/raise/raise_operators.h"

/* ---- where a result goes ---- */

static Node *only_user(const Raise *r, const Value *v, size_t *index) {
    const Use *uses;
    if (uses_of(r->uses, v, &uses) != 1)
        return NULL;
    *index = uses[0].index;
    return uses[0].node;
}

bool operator_has_one_result(const Node *n) {
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i])
            return false;
    return n->n_out > 0 && n->out[0];
}

/* Rounding before such a node gives the same as rounding after it: it moves numbers, or cuts them
 * off at a bound. */
static bool commutes(const Node *n, size_t operand) {
    bool clamps = n->def && n->def->quant.kind == QUANT_CLAMP;
    return (node_moves(n) || clamps) && operator_has_one_result(n) &&
           rule_single_data(n) == (int)operand;
}

Node *raise_reached_quantize(const Raise *r, const Value *y) {
    const Graph *g = y->graph;
    bool direct = true;
    for (;;) {
        size_t index;
        Node *user = only_user(r, y, &index);
        if (!user || user->graph != g)
            return NULL;
        if (is_own_quantize(user) && user->out[0]->type.quant->kind == QUANT_PARAMS)
            return direct || quant_is_per_tensor(user->out[0]->type.quant) ? user : NULL;
        if (!commutes(user, index))
            return NULL;
        direct = false;
        y = user->out[0];
    }
}

/* The same of the one result that n has. */
static Node *reached_quantize(const Raise *r, const Node *n) {
    return operator_has_one_result(n) ? raise_reached_quantize(r, n->out[0]) : NULL;
}

/* ---- names and types ---- */

void operator_absorb(Raise *r, Node *q, Value *y) {
    Value *ints = q->out[0];
    if (uses_is_output(r->uses, ints)) {
        y->name = ints->name;
        y->declared = ints->declared;
        y->doc = ints->doc;
        y->meta = ints->meta;
    } else {
        if (str_ends(y->name, "_QuantizeLinear_Input") && !map_get(r->made, y->name))
            y->name = ints->name; /* a name that only made room for the integers' one */
        y->declared = false;
    }
    raise_replace(r, ints, y);
    node_remove(q);
}

/* Behind operators of which nothing is known the shape may not be either. */
static Type tensor_or_unknown(Type t, ElemType e) {
    return t.kind == TYPE_NONE ? type_tensor(e, -1, NULL) : t;
}

void operator_set_quantized(Value *v, const Quant *q) {
    v->type = type_quantized(tensor_or_unknown(v->type, q->expressed), q);
}

bool operator_is_within(const QuantBuild *b, const Quant *from, const Quant *to) {
    Quant whole = *from;
    bool bit = elem_bits(from->storage) == 1 && elem_bits(to->storage) == 8;
    if (bit)
        whole.storage = onnx_storage(b, from->storage);
    whole.has_range = to->has_range;
    whole.lo = to->lo;
    whole.hi = to->hi;
    return quant_equal(from, to) ||
           ((bit || quant_narrowed(from)) && !quant_narrowed(to) && quant_equal(&whole, to));
}

/* What all data operands share, of a node that yields no other numbers; else NULL. */
static const Quant *handed_on(const Node *n) {
    QuantClass k = n->def->quant.kind;
    const Quant *q = NULL;
    for (size_t i = 0; i < n->n_in && (k == QUANT_CLAMP || k == QUANT_JOIN); i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        const Quant *x = op_quant(n->in[i]);
        if (!x || (q && !quant_equal(q, x)))
            return NULL;
        q = x;
    }
    return q;
}

void raise_result(Raise *r, Value *y, Node *q, const Quant *type) {
    size_t index;
    for (;; y = only_user(r, y, &index)->out[0]) {
        operator_set_quantized(y, type);
        if (only_user(r, y, &index) == q)
            break;
    }
    operator_absorb(r, q, y);
}

/* n and all up to the QuantizeLinear take its type. */
static void raise_results(Raise *r, Node *n, Node *q) {
    const Quant *type = q->out[0]->type.quant;
    const Quant *from = handed_on(n);
    if (from && operator_is_within(&r->b, from, type))
        type = from; /* one name for one grid */
    raise_result(r, n->out[0], q, type);
}

/* ---- multiply and accumulate ---- */

static const char *weights_refused(const Node *n, const Quant *x, const Quant *w) {
    if (x->kind != QUANT_PARAMS || w->kind != QUANT_PARAMS)
        return "parameters are not known";
    if (!quant_is_per_tensor(x))
        return "its input is quantized per axis";
    if (elem_bits(x->storage) > 16 || elem_bits(w->storage) > 16)
        return "it multiplies 32-bit integers";
    return quant_is_blocked(w) ? "its weights are quantized in blocks" : quant_axis_refusal(n, w);
}

void operator_keep_float(Raise *r, const Node *n, const char *why) {
    pass_remark(r->c, n, "%s", why);
}

static void raise_mac(Raise *r, Node *n) {
    const QuantRule *rule = &n->def->quant;
    Value *x = raise_source(n->in[0]);
    Value *w = n->n_in > (size_t)rule->mac.weight ? raise_source(n->in[rule->mac.weight]) : NULL;
    if (!x || !w || !operator_has_one_result(n) || x->type.quant->kind == QUANT_DYNAMIC)
        return;
    const char *why = weights_refused(n, x->type.quant, w->type.quant);
    if (why) {
        operator_keep_float(r, n, why);
        return;
    }
    Node *q = reached_quantize(r, n);
    size_t at = (size_t)rule->mac.bias;
    Value *bias = at ? node_input(n, at) : NULL;
    if (bias && (q || raise_source(bias))) {
        Value *ints = raise_bias(r, n, bias, x, w, q ? q->out[0]->type.quant : NULL, &why);
        if (!ints) {
            operator_keep_float(r, n, why);
            return;
        }
        n->in[at] = ints;
    }
    n->in[0] = x;
    n->in[rule->mac.weight] = w;
    op_resolve(n, r->b.d);
    if (q)
        raise_results(r, n, q);
}

/* ---- operators whose operands and result have parameters of their own ---- */

bool operator_reads_integers(Raise *r, Node *n) {
    OpCtx c = op_ctx(n, NULL);
    const QuantRule *rule = &n->def->quant;
    const char *why = rule->integer_refusal ? rule->integer_refusal(&c, NULL) : NULL;
    if (why) {
        operator_keep_float(r, n, why);
        return false;
    }
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(rule, i))
            n->in[i] = raise_source(n->in[i]);
    return true;
}

static void raise_compute(Raise *r, Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        Value *x = raise_source(n->in[i]);
        if (!x || x->type.quant->kind != QUANT_PARAMS || !quant_is_per_tensor(x->type.quant) ||
            elem_bits(x->type.elem) > 16)
            return;
        any = true;
    }
    Node *q = any ? reached_quantize(r, n) : NULL;
    if (!q || !quant_is_per_tensor(q->out[0]->type.quant))
        return;
    if (operator_reads_integers(r, n))
        raise_results(r, n, q);
}

/* ---- all ---- */

static void raise_node(Raise *r, Node *n) {
    const QuantRule *rule = &n->def->quant;
    if (rule->all_results && (rule->stores.operands || !operator_has_one_result(n))) {
        if (n->n_out && !type_is_quantized(n->in[0]->type))
            raise_recurrent(r, n);
        return;
    }
    if (n->n_out == 0 || !n->out[0] || type_is_quantized(n->out[0]->type))
        return;
    switch (rule->kind) {
    case QUANT_NEVER: break;
    case QUANT_MAC: raise_mac(r, n); break;
    case QUANT_MOVE:
    case QUANT_ORDER:
        if (node_interpolates(n))
            raise_compute(r, n);
        else
            raise_mover(r, n);
        break;
    case QUANT_JOIN:
    case QUANT_CLAMP:
        if (reached_quantize(r, n))
            raise_compute(r, n);
        else
            raise_kept(r, n);
        break;
    case QUANT_COMPUTE: raise_compute(r, n); break;
    }
}

/* Weights are moved once, here: runtimes want them as constants. */
static void move_weights(Raise *r, Node *n) {
    if (node_moves(n) && operator_has_one_result(n) && type_is_quantized(n->out[0]->type) &&
        !uses_is_output(r->uses, n->out[0]))
        module_fold_node(r->m, n, r->b.pass);
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    for (Node *n = g->first, *next; n; n = next) {
        if (n->def)
            raise_node(r, n);
        next = n->next; /* not before: it may go */
        if (n->def)
            move_weights(r, n);
    }
}

void raise_operators(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}
