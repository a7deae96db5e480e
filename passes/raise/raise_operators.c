/* An operator whose operands come from DequantizeLinear and whose result goes to one QuantizeLinear
 * computes on the quantized types itself: that is what an operator on quantized types means. */
#include "exec/fold.h"
#include "ir/ops/qop.h"
#include "passes/edit.h"
#include "passes/target/legal.h"
#include "passes/raise/raise.h"

/* ---- where a result goes ---- */

static Node *only_user(const Raise *r, const Value *v, size_t *index) {
    const Use *uses;
    if (uses_of(r->uses, v, &uses) != 1)
        return NULL;
    *index = uses[0].index;
    return uses[0].node;
}

static bool one_result(const Node *n) {
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i])
            return false;
    return n->n_out > 0 && n->out[0];
}

/* Rounding before such a node gives the same as rounding after it: it moves numbers, or cuts them
 * off at a bound. */
static bool commutes(const Node *n, size_t operand) {
    bool clamps = n->def && n->def->quant.kind == QUANT_CLAMP;
    return (node_moves(n) || clamps) && one_result(n) && rule_single_data(n) == (int)operand;
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
    return one_result(n) ? raise_reached_quantize(r, n->out[0]) : NULL;
}

/* ---- names and types ---- */

/* `y` takes the place of the integers that `q` made of it; the interface keeps its names. */
static void absorb(Raise *r, Node *q, Value *y) {
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

static void set_quantized(Value *v, const Quant *q) {
    v->type = type_quantized(tensor_or_unknown(v->type, q->expressed), q);
}

/* Numbers of `from` are those of `to`, be it that `from` has fewer: what is handed on is not
 * clipped again (lower_qdq.c), and keeps its range. */
static bool is_within(const QuantBuild *b, const Quant *from, const Quant *to) {
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
        set_quantized(y, type);
        if (only_user(r, y, &index) == q)
            break;
    }
    absorb(r, q, y);
}

/* n and all up to the QuantizeLinear take its type. */
static void raise_results(Raise *r, Node *n, Node *q) {
    const Quant *type = q->out[0]->type.quant;
    const Quant *from = handed_on(n);
    if (from && is_within(&r->b, from, type))
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

static void keep_float(Raise *r, const Node *n, const char *why) {
    pass_remark(r->c, n, "%s", why);
}

static void raise_mac(Raise *r, Node *n) {
    const QuantRule *rule = &n->def->quant;
    Value *x = raise_source(n->in[0]);
    Value *w = n->n_in > (size_t)rule->mac.weight ? raise_source(n->in[rule->mac.weight]) : NULL;
    if (!x || !w || !one_result(n) || x->type.quant->kind == QUANT_DYNAMIC)
        return;
    const char *why = weights_refused(n, x->type.quant, w->type.quant);
    if (why) {
        keep_float(r, n, why);
        return;
    }
    Node *q = reached_quantize(r, n);
    size_t at = (size_t)rule->mac.bias;
    Value *bias = at ? node_input(n, at) : NULL;
    if (bias && (q || raise_source(bias))) {
        Value *ints = raise_bias(r, n, bias, x, w, q ? q->out[0]->type.quant : NULL, &why);
        if (!ints) {
            keep_float(r, n, why);
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

/* All data operands become the integers behind them, unless the node stays float. */
static bool reads_integers(Raise *r, Node *n) {
    OpCtx c = op_ctx(n, NULL);
    const QuantRule *rule = &n->def->quant;
    const char *why = rule->integer_refusal ? rule->integer_refusal(&c, NULL) : NULL;
    if (why) {
        keep_float(r, n, why);
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
    if (reads_integers(r, n))
        raise_results(r, n, q);
}

/* ---- movers ---- */

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
    set_quantized(y, q);
    for (size_t k = 0; k < count; k++) {
        Node *user = uses[k].node;
        if (user && user->in[uses[k].index] != y)
            continue;
        if (user && is_own_quantize(user)) {
            bool same = is_within(&r->b, q, user->out[0]->type.quant);
            bool returned =
                uses_is_output(r->uses, user->out[0]); /* a branch of If returns its own */
            if (same && !(returned && (uses_is_output(r->uses, y) || user->graph != n->graph)))
                absorb(r, user, y);
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
        if (!user || !is_own_quantize(user) || !is_within(&r->b, q, user->out[0]->type.quant))
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

static void raise_mover(Raise *r, Node *n) {
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
        keep_float(r, n, why);
        return;
    }
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->type.kind == TYPE_NONE) {
            keep_float(r, n, "the type of its result is not known");
            return;
        }
    n->in[0] = x;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && elem_is_float(n->out[i]->type.elem) && !type_is_quantized(n->out[i]->type))
            move_result(r, n, i, q);
}

/* Relu of integers, and a Concat of those of one grid, yield integers of that grid, whoever reads
 * them: several QuantizeLinear, a product. */
static void raise_kept(Raise *r, Node *n) {
    const Quant *q = NULL;
    bool wanted = one_result(n) && is_wanted(r, n);
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
    if (reads_integers(r, n))
        move_result(r, n, 0, q);
}

/* ---- all ---- */

static void raise_node(Raise *r, Node *n) {
    const QuantRule *rule = &n->def->quant;
    if (rule->all_results && (rule->stores.operands || !one_result(n))) {
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
    if (node_moves(n) && one_result(n) && type_is_quantized(n->out[0]->type) &&
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
