/* Chooses a quantization for every value that an integer operator touches, from the statistics of
 * calibration and the scheme, and states it as `float ~ !name`. Nothing becomes integer here.
 *
 *   1. which nodes can be integer: those whose operator has an integer meaning and whose operands
 *      have statistics or are constants; data movers follow their neighbours;
 *   2. which values share parameters (passes/quantize/sharing.h);
 *   3. the parameters; weights per channel, widened where the int32 bias would overflow.
 *
 * Values that have a quantization already (a hand-edited file) keep it. */
#include "passes/quantize/choice.h"
#include "passes/edit.h"
#include "passes/quantize/explain.h"
#include "passes/quantize/masks.h"
#include "passes/recipe.h"
#include "passes/quantize/sharing.h"
#include "passes/quantize/singular.h"
#include "passes/quantize/weight_quant.h"

#include <math.h>

typedef struct Decide {
    PassContext *c;
    Module *m;
    Uses *uses;
    UniqueNames *names;
    size_t n_values;    /* that existed at the start */
    bool *integer;      /* by node id */
    bool *weights_only; /* by node id: weights are quantized, what it computes on is not */
    Recipe recipe;
    bool *float_result; /* by node id: the result stays float as a recipe has it */
    bool *sum;          /* by node id: its result is quantized as a recipe has it */
    bool *wanted;       /* by value id: gets a quantization */
    bool *shared;       /* by value id: a weight that has been decided here */
    Sharing sharing;    /* which values take the parameters of which */
    bool by_origin;     /* explain: by the name that a constant had in the model */
} Decide;

/* A product has one weight, a recurrent layer two. */
static bool takes_weight(const Node *n, size_t input) {
    const QuantRule *q = &n->def->quant;
    return q->kind == QUANT_MAC
               ? input == (size_t)q->mac.weight
               : q->kind != QUANT_NEVER && input < 32 && (q->stores.operands >> input & 1);
}

static bool is_weight(const Node *n, size_t input) {
    return takes_weight(n, input) && edit_float_const(n->in[input]);
}

static Choice choice_of(const Decide *d, const Value *v) {
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
    return v->stat && v->stat->min && v->stat->max ? "its statistics are not a finite range"
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
    if (!v->type.quant && choice_of(d, v).is_float)
        return choice_faulty(d->c, v) ? choice_faulty(d->c, v) : "an operand stays float as asked";
    const Node *broken = breaks_at_zero(d, v);
    return broken ? node_strf(n,
                              "an operand, never 0, would be rounded to 0, where " STR_FMT
                              " is infinite",
                              STR_ARG(broken->op))
                  : why_no_range(d, v);
}

/* A product can be left in float. */
static bool stays_float(const Decide *d, const Value *v) {
    return !v->type.quant && (choice_of(d, v).is_float || (v->def && d->float_result[v->def->id]) ||
                              breaks_at_zero(d, v));
}

static const char *why_one_result(const Decide *d, const Node *n, const Value *y) {
    if (!stays_float(d, y))
        return why_no_range(d, y);
    if (n->def->quant.kind == QUANT_MAC)
        return NULL;
    const Node *broken = breaks_at_zero(d, y);
    return broken ? node_strf(n,
                              "its result, never 0, would be rounded to 0, where " STR_FMT
                              " is infinite",
                              STR_ARG(broken->op))
                  : "its result stays float as asked";
}

/* The first stands for all, but of recurrent layers, which may lack it. */
static const char *why_result(const Decide *d, const Node *n) {
    size_t results = n->def->quant.stores.operands ? n->n_out : n->n_out > 0;
    bool any = false;
    for (size_t i = 0; i < results; i++) {
        const char *why = n->out[i] ? why_one_result(d, n, n->out[i]) : NULL;
        any = any || n->out[i];
        if (why)
            return why;
    }
    return any ? NULL : "nobody asks for its result";
}

/* Whether the result goes out of the graph and nowhere else. */
static bool only_goes_out(const Decide *d, const Node *n) {
    const Use *use;
    size_t uses = n->n_out && n->out[0] ? uses_of(d->uses, n->out[0], &use) : 0;
    for (size_t i = 0; i < uses; i++)
        if (use[i].node)
            return false;
    return uses && n->graph == d->m->graph;
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
    if (n->def->quant.fixed_output && d->c->float_outputs && only_goes_out(d, n))
        return "its result goes out as it is, and its integers stop short of 1";
    return NULL;
}

/* What the target's page has against it, which a rule of the user's does not change where it would
 * be wrong. */
static const char *why_target(const Decide *d, const Node *n) {
    const TargetPage *t = d->c->target;
    const char *wrong = n->n_out && n->out[0] ? choice_faulty(d->c, n->out[0]) : NULL;
    if (wrong)
        return wrong;
    if (choice_to_keep(d->c, n) || d->c->no_floats || target_quantizes_before(t, n))
        return NULL;
    return node_strf(n, "%s wants integers before other operators (-only=... asks for it)",
                     t->runtime);
}

const char *why_never_integer(const Node *n) {
    if (!n->def)
        return "qxc does not know this operator";
    if (n->def->quant.kind != QUANT_NEVER)
        return NULL;
    return n->def->quant.stores.operands
               ? "this operator has no integer form (-weight-only stores its "
                 "weights as integers)"
               : "this operator has no integer form";
}

/* It could be integer, and is better left float; NULL where that is not so, or nobody wants it. */
static const char *why_preferred(const Decide *d, const Node *n) {
    const char *why = why_never_integer(n) || d->c->no_floats ? NULL : op_prefers_float(n);
    return why && !choice_why_kept(d->c, n) && !choice_to_keep(d->c, n) ? why : NULL;
}

/* NULL when the node can be integer, else why not. */
static const char *why_float(const Decide *d, const Node *n) {
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
static bool only_weights(const Decide *d, const Node *n) {
    if (!n->def || n->def->quant.kind != QUANT_MAC || !n->in[0] || choice_why_kept(d->c, n))
        return false;
    size_t w = (size_t)n->def->quant.mac.weight;
    return node_input(n, w) && is_weight(n, w) && !why_operand(d, n, w) && !n->in[0]->type.quant &&
           choice_of(d, n->in[0]).is_float;
}

static bool is_mac(const Node *n) {
    return n->def && n->def->quant.kind == QUANT_MAC && n->n_out == 1 && n->out[0];
}

/* Rules state parameters of the sum, and that the product is float. */
static bool rounds_sum_alone(const Decide *d, const Node *n, const Node *add) {
    return choice_of(d, n->out[0]).is_float && choice_of(d, add->out[0]).fixed;
}

/* A recipe takes MatMul and the Add behind it out of what the rules say. The sum that is to be
 * quantized is the product itself where there is no bias: then there is nothing to take out. A rule
 * `bias float` is such a recipe for its nodes. */
static void mark_recipe(Graph *g, void *ctx) {
    Decide *d = ctx;
    FOR_NODES(n, g) {
        const Node *add = recipe_bias_of(d->uses, n);
        bool stated = recipe_takes(n) && add && rounds_sum_alone(d, n, add);
        bool recipe = (d->recipe != RECIPE_NONE && recipe_takes(n)) || stated;
        bool quantized = !recipe || d->recipe == RECIPE_FP32_BIAS_QDQ || stated;
        if (!recipe && !(is_mac(n) && choice_float_bias(d->c, n)))
            continue;
        d->float_result[n->id] = add || !quantized; /* needs no statistics then */
        if (why_float(d, n))
            d->float_result[n->id] = false;
        else if (add && quantized)
            d->wanted[add->out[0]->id] = d->sum[add->id] = !why_result(d, add);
    }
}

/* The MatMul that this node reads and that stays float: its bias is added here, or it has none. */
static Node *recipe_operand(const Decide *d, const Node *add) {
    for (size_t i = 0; i < add->n_in; i++)
        if (add->in[i] && add->in[i]->def && d->float_result[add->in[i]->def->id])
            return add->in[i]->def;
    return NULL;
}

static void mark_anchors(Graph *g, void *ctx) {
    Decide *d = ctx;
    FOR_NODES(n, g) {
        const char *why = why_float(d, n);
        Node *of = recipe_operand(d, n);
        if (of && recipe_bias_of(d->uses, of) == n)
            why = "its bias is added in float, as the scheme has it";
        else if (of && !why)
            why = "the product it reads stays float, as the scheme has it";
        if (why) {
            d->weights_only[n->id] = only_weights(d, n);
            if (n->n_out && n->out[0] && elem_is_float(type_real_elem(n->out[0]->type)))
                (why_preferred(d, n) ? pass_remark_preference : pass_remark)(d->c, n, "%s", why);
        } else if (!is_follower(n) || d->c->no_floats) {
            d->integer[n->id] = true;
        }
    }
}

static void want_operands(Decide *d, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && !is_weight(n, i))
            d->wanted[n->in[i]->id] = true;
    bool before = d->c->target->before.n && target_quantizes_before(d->c->target, n);
    for (size_t i = 0; i < n->n_out && !before; i++)
        if (n->out[i] && type_real_elem(n->out[i]->type) == ELEM_FLOAT &&
            !stays_float(d, n->out[i]))
            d->wanted[n->out[i]->id] = true;
}

/* What a recipe leaves float: those behind it that are float in and out stay so, too. */
static bool is_float_sum(const Decide *d, const Value *v) {
    return v->def && !d->wanted[v->id] &&
           (d->float_result[v->def->id] || recipe_operand(d, v->def));
}

/* A follower joins when its operand (forward) or result (backward) is quantized anyway. */
static bool follow(Decide *d, Node *n, bool backward) {
    if (!n->def || d->integer[n->id] || !is_follower(n) || clamps_sum(&d->sharing, n))
        return false;
    const Value *v = backward ? n->out[0] : n->in[0];
    if (!v || !d->wanted[v->id] || (backward && n->in[0] && is_float_sum(d, n->in[0])) ||
        why_float(d, n))
        return false;
    d->integer[n->id] = true;
    want_operands(d, n);
    return true;
}

/* To and fro, as what joins backward quantizes what others read; rarely more than twice. */
static void mark_followers(Graph *g, void *ctx) {
    enum { ROUNDS_MOST = 16 };
    Decide *d = ctx;
    FOR_NODES(n, g) {
        if (d->integer[n->id])
            want_operands(d, n);
    }
    bool any = true;
    for (int i = 0; any && i < ROUNDS_MOST; i++) {
        any = false;
        FOR_NODES(n, g) any = follow(d, n, false) || any;
        for (Node *n = g->last; n; n = n->prev)
            any = follow(d, n, true) || any;
    }
}

static const Quant *named(Decide *d, Quant *q, const Value *v) {
    q->alias = v->name;
    module_add_quant(d->m, q);
    return q;
}

static const Quant *activation_quant(Decide *d, Value *v) {
    Choice o = choice_of(d, v);
    float scale, min, max;
    int64_t zp;
    bool cut;
    if (o.fixed)
        return o.fixed->alias.s ? o.fixed : named(d, quant_copy(d->m->arena, o.fixed), v);
    bool stated = o.has_range || o.reduce_range; /* of fewer integers than the storage has */
    if (!o.sym && !stated && v->def && v->def->def && d->integer[v->def->id] &&
        v->def->def->quant.fixed_output) {
        OpCtx c = op_ctx(v->def, d->c->d);
        if (v->def->def->quant.fixed_output(&c, o.storage, &scale, &zp))
            return named(d, quant_per_tensor(d->m->arena, o.storage, scale, zp), v);
    }
    masked_range(d->uses, v, &min, &max, &cut); /* finite: why_float looked */
    IntRange r = choice_range(&o);
    params_from_minmax(min, max, r, o.sym, o.pow2, &scale, &zp);
    Quant *q = quant_per_tensor(d->m->arena, o.storage, scale, zp);
    /* Being symmetric says where the ends of the range are, not that beyond them is nothing. */
    bool whole = !stated || d->c->target->no_clip;
    if (!whole && (r.lo != elem_min(o.storage) || r.hi != elem_max(o.storage))) {
        q->has_range = true;
        q->lo = r.lo;
        q->hi = r.hi;
    }
    return named(d, q, v);
}

static void assign(Decide *d, Value *v) {
    if (!v || !d->wanted[v->id] || v->type.quant)
        return;
    Value *root = sharing_root(&d->sharing, v);
    if (!root->type.quant)
        root->type = type_tilde(root->type, activation_quant(d, root));
    if (v != root)
        v->type = type_tilde(v->type, root->type.quant);
}

/* ---- weights ---- */

/* Whether every reader takes the value as its weight: then one integer tensor can serve all. */
static bool only_weight(const Decide *d, const Value *w) {
    const Use *use;
    size_t n = uses_of(d->uses, w, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || !use[i].node->def ||
            !(d->integer[use[i].node->id] || d->weights_only[use[i].node->id]) ||
            !is_weight(use[i].node, use[i].index))
            return false;
    return true;
}

/* The same data as a weight of this node alone. */
static Value *own_weight(Decide *d, Node *n, size_t at) {
    Value *w = n->in[at];
    Value *copy = graph_add_const(w->graph, unique_name(d->names, w->name),
                                  type_tensor(w->type.elem, w->type.rank, w->type.dims), w->data);
    value_from(copy, w, "decide");
    n->in[at] = copy;
    return copy;
}

static void assign_weight(Decide *d, Node *n, size_t at) {
    Value *w = n->in[at];
    if (!is_weight(n, at) || (w->type.quant && !d->shared[w->id]))
        return; /* stated by the user */
    OpCtx c = op_ctx(n, d->c->d);
    const QuantRule *rule = &n->def->quant;
    int axis = rule->stores.operands   ? rule->stores.axis
               : rule->mac.weight_axis ? rule->mac.weight_axis(&c)
                                       : -1;
    Choice o = choice_of_weight(d->c, n, w);
    Quant *q = o.fixed ? quant_copy(d->m->arena, o.fixed) : weight_quant(d->c, &o, n, w, axis);
    if (o.fixed && q->n_axes == 1)
        q->axis[0] = choice_axis(w, q->axis[0]);
    if (w->type.quant && quant_equal(w->type.quant, q))
        return; /* another node has decided the same */
    if (w->type.quant || !only_weight(d, w))
        w = own_weight(d, n, at);
    else
        d->shared[w->id] = true;
    w->type = type_tilde(w->type, named(d, q, w));
}

static void assign_graph(Graph *g, void *ctx) {
    Decide *d = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        assign(d, g->in[i]);
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_in; i++)
            assign(d, n->in[i]);
        for (size_t i = 0; i < n->n_in; i++)
            if (n->def && takes_weight(n, i) && (d->integer[n->id] || d->weights_only[n->id]))
                assign_weight(d, n, i);
        for (size_t i = 0; i < n->n_out; i++)
            assign(d, n->out[i]);
    }
}

/* ---- what was decided, in words ---- */

static bool is_integer_bias(const Decide *d, const Node *n, size_t at) {
    return n->def && n->def->quant.kind == QUANT_MAC && n->def->quant.mac.bias > 0 &&
           at == (size_t)n->def->quant.mac.bias && d->integer[n->id];
}

/* Whether v is the constant of that name, rewritten. */
static bool is_made_of(const Value *v, const char *name) {
    for (size_t i = 0; v->kind == VALUE_CONST && i < v->from.n; i++)
        if (!v->from.from[i].op.s && str_is(v->from.from[i].name, name))
            return true;
    return false;
}

static void explain(Value *v, void *ctx) {
    Decide *d = ctx;
    PassContext *c = d->c;
    if (c->explanation.s ||
        !(d->by_origin ? is_made_of(v, c->explain) : str_is(v->name, c->explain)))
        return;
    const Use *use;
    bool weight = v->kind == VALUE_CONST && uses_of(d->uses, v, &use) > 0 && use[0].node &&
                  use[0].node->def && is_weight(use[0].node, use[0].index);
    bool bias = v->kind == VALUE_CONST && uses_of(d->uses, v, &use) > 0 && use[0].node &&
                is_integer_bias(d, use[0].node, use[0].index);
    Buf b = buf_new(d->m->arena);
    if (bias) {
        explain_bias(&b, c, v, use[0].node);
        c->explanation = buf_as_str(&b);
        return;
    }
    Value *root = weight || v->id >= d->n_values ? v : sharing_root(&d->sharing, v);
    Choice o = weight ? choice_of_weight(c, use[0].node, v) : choice_of(d, root);
    explain_value(&b, c, d->uses, v, root, &o);
    c->explanation = buf_as_str(&b);
}

bool pass_decide(Module *m, PassContext *c) {
    Decide d = {.c = c,
                .m = m,
                .recipe = recipe_of(c),
                .uses = uses_new(m),
                .names = unique_names_new(m),
                .n_values = m->n_values,
                .integer = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .weights_only = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .float_result = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .sum = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .wanted = NEW_ARRAY(m->arena, bool, m->n_values),
                .shared = NEW_ARRAY(m->arena, bool, m->n_values)};
    if (!choice_check(c, m) || !module_data_required(m, c->d))
        return false;
    d.sharing = sharing_new(m, c, d.uses, d.integer, d.wanted, d.sum);
    module_each_graph(m, mark_recipe, &d);
    module_each_graph(m, mark_anchors, &d);
    module_each_graph(m, mark_followers, &d);
    sharing_find(&d.sharing, m);
    module_each_graph(m, assign_graph, &d);
    if (c->explain)
        module_each_value(m, explain, &d);
    d.by_origin = true;
    if (c->explain)
        module_each_value(m, explain, &d);
    edit_sweep(m);
    return true;
}
