/* Weight-only quantization (-weight-only): the weights of Conv, Gemm, MatMul, LSTM and the like get
 * a quantization from their numbers, as `float ~ !name`; activations stay float, so no statistics
 * are needed. true-quant then stores the integers and puts a DequantizeLinear before the operator.
 *
 * Values that have a quantization already keep it. A weight that other operators read as plain
 * data is theirs too: rounding it would change what they compute, so this node gets a copy. But for
 * rows that are looked up in it where tables are tied to products (tie_tables.c). */
#include "passes/edit.h"
#include "passes/quantize/tied.h"
#include "passes/quantize/weight_quant.h"

typedef struct Weights {
    PassContext *c;
    Module *m;
    Uses *uses;
    UniqueNames *names;
    bool *decided; /* by value id: in this run */
    char *finite;  /* by value id: 'y' or 'n' once somebody has looked */
    size_t n;      /* size of both */
} Weights;

/* Reading all of a large weight takes a while, and its reader and its other readers ask. */
static bool is_finite(const Weights *w, const Value *v) {
    if (v->id >= w->n)
        return edit_is_finite(v);
    char *known = &w->finite[v->id];
    if (!*known)
        *known = edit_is_finite(v) ? 'y' : 'n';
    return *known == 'y';
}

static bool is_weight(const Node *n, size_t i) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    return r && (r->kind == QUANT_MAC ? i == (size_t)r->mac.weight
                                      : i < 32 && (r->stores.operands >> i & 1));
}

static int channel_axis(const Node *n, Diags *d) {
    const QuantRule *r = &n->def->quant;
    OpCtx c = op_ctx(n, d);
    return r->stores.operands ? r->stores.axis : quant_weight_axis(r, &c);
}

/* NULL when this weight of the node can be quantized, else why not. */
static const char *why_float(const Weights *w, const Node *n, const Value *v) {
    const char *why = choice_why_kept(w->c, n);
    if (why)
        return why;
    if (choice_of_weight(w->c, n, v).is_float)
        return "its weights stay float as asked";
    if (!edit_float_const(v))
        return "its weights are not a float constant";
    if (!is_finite(w, v))
        return "its weights hold NaN or infinity";
    return NULL;
}

/* Whether a reader looks rows up in the weights of `product` that are tied to its table. */
static bool is_tied(const Weights *w, const Node *reader, const Node *product, const Value *v) {
    const PassContext *c = w->c;
    size_t at = (size_t)product->def->quant.mac.weight;
    return c->tie_tables && tied_looks_up(reader, v, tied_axis(product, at, c->d)) &&
           !tied_refusal(c, reader, v, product, v);
}

/* Whether every reader takes the value as its weight, or is tied to those of node `product`. */
static bool only_weight(const Weights *w, const Node *product, const Value *v) {
    const Use *use;
    size_t n = uses_of(w->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node ||
            !(is_weight(use[i].node, use[i].index) ? !why_float(w, use[i].node, v)
                                                   : is_tied(w, use[i].node, product, v)))
            return false;
    return true;
}

/* Tables that are stored with the weights now, for the summary. */
static void count_tied(const Weights *w, const Node *product, const Value *v) {
    const Use *use;
    bool any = false;
    size_t n = uses_of(w->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        any = any || is_tied(w, use[i].node, product, v);
    w->c->n_tied += any;
    w->c->tied_bytes += any ? (int64_t)elem_bytes(v->type.quant->storage, v->data->count) : 0;
}

static void decide(Weights *w, Node *n, size_t at) {
    Value *v = n->in[at];
    bool again = v->id < w->n && w->decided[v->id];
    if (v->type.quant && !again)
        return; /* stated by the user */
    int axis = channel_axis(n, w->c->d);
    Choice o = choice_of_weight(w->c, n, v);
    Quant *q = o.fixed ? quant_copy(w->m->arena, o.fixed) : weight_quant(w->c, &o, n, v, axis);
    if (again && quant_equal(v->type.quant, q))
        return; /* another node has decided the same */
    if (again || !only_weight(w, n, v)) {
        Value *copy =
            graph_add_const(v->graph, unique_name(w->names, v->name),
                            type_tensor(v->type.elem, v->type.rank, v->type.dims), v->data);
        value_from(copy, v, "decide-weights");
        n->in[at] = v = copy;
    } else {
        w->decided[v->id] = true;
    }
    q->alias = v->name;
    module_add_quant(w->m, q);
    v->type = type_tilde(v->type, q);
    count_tied(w, n, v);
    module_release(w->m, v->data);
}

static void decide_graph(Graph *g, void *ctx) {
    Weights *w = ctx;
    FOR_NODES(n, g) {
        size_t weights = 0;
        for (size_t i = 0; i < n->n_in; i++) {
            if (!n->in[i] || !is_weight(n, i))
                continue;
            const char *why = why_float(w, n, n->in[i]);
            weights++;
            if (why)
                pass_remark(w->c, n, "%s", why);
            else
                decide(w, n, i);
        }
        const char *why = weights ? NULL : why_unlike_product(n);
        if (why)
            pass_remark(w->c, n, "%s", why);
    }
}

bool pass_decide_weights(Module *m, PassContext *c) {
    if (!choice_check(c, m) || !module_data_required(m, c->d))
        return false;
    Weights w = {.c = c,
                 .m = m,
                 .uses = uses_new(m),
                 .names = unique_names_new(m),
                 .n = m->n_values,
                 .decided = NEW_ARRAY(m->arena, bool, m->n_values),
                 .finite = NEW_ARRAY(m->arena, char, m->n_values)};
    c->n_tied = 0;
    c->tied_bytes = 0;
    module_each_graph(m, decide_graph, &w);
    if (c->tie_tables && !c->n_tied)
        diag_warning(c->d, LOC_NONE,
                     "-tie-tables has no effect: no table holds the weights of a product that take "
                     "the same type");
    edit_sweep(m);
    return true;
}
