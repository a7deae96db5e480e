/* See passes/quantize/placement.h. */
#include "passes/quantize/placement.h"
#include "passes/edit.h"
#include "passes/quantize/open.h"

/* ---- where quantizers stand ---- */

Placing placing_of(const PassContext *c) {
    const TargetPage *t = c->target;
    if (c->placement == PLACEMENT_ALL)
        return PLACING_EVERYWHERE;
    if (c->placement == PLACEMENT_PRODUCTS || t->before.n)
        return t->before.n ? PLACING_BEFORE : PLACING_PRODUCTS;
    bool alone = c->runtime_alone && t->n_fusions && c->float_outputs && !c->no_floats;
    return alone && recipe_of(c) == RECIPE_NONE ? PLACING_BETWEEN : PLACING_EVERYWHERE;
}

/* Products that the runtime fuses, or all where that is not known. */
static bool is_fused_product(const TargetPage *t, const Node *n) {
    const TargetFusion *f = target_fusion(t, n);
    return t->n_fusions ? f && f->rule == TARGET_RULE_PRODUCT
                        : n->def->quant.kind == QUANT_MAC && domain_is_onnx(n->domain);
}

static bool by_products(const Decide *d) {
    return d->placing == PLACING_PRODUCTS || d->placing == PLACING_BETWEEN;
}

/* Whether a quantizer may stand before it for its own sake. */
static bool takes_quantizers(const Decide *d, const Node *n) {
    return d->placing == PLACING_BEFORE ? target_quantizes_before(d->c->target, n)
                                        : !by_products(d) || is_fused_product(d->c->target, n);
}

/* Whether a rule says a type of what it yields. */
static bool is_typed_by_rule(const Decide *d, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        Choice o = n->out[i] ? choice_of(d, n->out[i]) : (Choice){0};
        if (n->out[i] && (o.fixed || choice_said(&o, CHOICE_TYPE)))
            return true;
    }
    return false;
}

const char *why_not_placed(const Decide *d, const Node *n) {
    if (d->placing == PLACING_BETWEEN || takes_quantizers(d, n) || choice_to_keep(d->c, n) ||
        d->c->no_floats || (d->placing == PLACING_PRODUCTS && is_follower(n)))
        return NULL;
    return d->placing == PLACING_PRODUCTS
               ? "it is no product (-placement=products)"
               : node_strf(n, "%s wants integers before other operators (-only=... asks for it)",
                           d->c->target->runtime);
}

/* ---- what is quantized for its own sake ---- */

bool is_mac(const Node *n) {
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

/* Of a model that is decided in part where data may decide all, and not of what was kept as it is
 * written, integer or not. */
static bool is_told(const Decide *d, const Node *n) {
    const Openings *o = d->c->open;
    bool float_result = false; /* a recurrent layer may lack its first */
    for (size_t i = 0; i < n->n_out && !float_result; i++)
        float_result = n->out[i] && elem_is_float(type_real_elem(n->out[i]->type));
    bool written = choice_why_kept(d->c, n) && result_is_written(d->c, n);
    return float_result && (!o || (o->rest && !written));
}

/* A product of two values, as those of attention: two conversions before it and one behind take
 * what integers spare, and the scores lose most by rounding (docs/targets.md has both figures). */
static bool multiplies_values(const Node *n) {
    return is_mac(n) && n->in[0]->kind != VALUE_CONST &&
           n->in[n->def->quant.mac.weight]->kind != VALUE_CONST;
}

/* Whether a rule wants it in integers. */
static bool is_asked_for(const Decide *d, const Node *n) {
    return choice_to_keep(d->c, n) || is_typed_by_rule(d, n);
}

/* Whether its neighbours decide if it is integer. */
static bool stands_between(const Decide *d, const Node *n) {
    return d->placing == PLACING_BETWEEN && (!takes_quantizers(d, n) || multiplies_values(n)) &&
           !is_asked_for(d, n);
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
            if (is_told(d, n))
                pass_remark_why(d->c, n, why, why_preferred(d, n));
        } else if (is_follower(n) && !d->c->no_floats) {
            continue;
        } else if (stands_between(d, n)) {
            d->between[n->id] = true;
        } else {
            d->integer[n->id] = true;
        }
    }
}

/* Whether the runtime makes integers of a product only where a QuantizeLinear stands behind it. */
static bool is_fused_with_quantizer(const Decide *d, const Node *n) {
    const TargetFusion *f = target_fusion(d->c->target, n);
    return f && f->rule == TARGET_RULE_PRODUCT && !has_real_kernel(d, n);
}

/* Whether what it yields is quantized whoever reads it. */
static bool wants_results(const Decide *d, const Node *n) {
    if (d->placing == PLACING_EVERYWHERE || !takes_quantizers(d, n))
        return true;
    return by_products(d) && (is_fused_with_quantizer(d, n) || is_typed_by_rule(d, n));
}

bool wants_result_alone(const Decide *d, const Node *n) {
    return is_mac(n) && d->wanted[n->out[0]->id] && is_fused_with_quantizer(d, n) &&
           !is_asked_for(d, n);
}

static void want_operands(Decide *d, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && !is_weight(n, i))
            d->wanted[n->in[i]->id] = true;
    for (size_t i = 0; wants_results(d, n) && i < n->n_out; i++)
        if (n->out[i] && type_real_elem(n->out[i]->type) == ELEM_FLOAT &&
            !stays_float(d, n->out[i]))
            d->wanted[n->out[i]->id] = true;
}

/* ---- what follows ---- */

/* What a recipe leaves float: those behind it that are float in and out stay so, too. */
static bool is_float_sum(const Decide *d, const Value *v) {
    return v->def && !d->wanted[v->id] &&
           (d->float_result[v->def->id] || recipe_operand(d, v->def));
}

/* Where products alone are quantized, others that read the value would read it rounded for nothing;
 * and what cuts a sum in float has no quantizer before it, but a product can cut itself. */
static bool stays_behind(const Decide *d, const Node *n) {
    const Use *use;
    const Node *made = n->in[0]->def;
    bool cuts_float = n->def->quant.kind == QUANT_CLAMP &&
                      !(made && made->def && made->def->quant.kind == QUANT_MAC);
    return by_products(d) && (cuts_float || uses_of(d->uses, n->in[0], &use) > 1);
}

/* A follower joins when its operand (forward) or result (backward) is quantized anyway. */
static bool follow(Decide *d, Node *n, bool backward) {
    if (!n->def || d->integer[n->id] || !is_follower(n) || clamps_sum(&d->sharing, n))
        return false;
    const Value *v = backward ? n->out[0] : n->in[0];
    if (!v || !d->wanted[v->id] ||
        (backward && n->in[0] && (is_float_sum(d, n->in[0]) || stays_behind(d, n))) ||
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

/* ---- all ---- */

/* A product among them, which the runtime computes in float, has its weights in integers all the
 * same: models stay as small. */
static void leave_between(Graph *g, void *ctx) {
    Decide *d = ctx;
    FOR_NODES(n, g) {
        if (!d->between[n->id] || d->integer[n->id])
            continue;
        d->weights_only[n->id] = is_mac(n) && !multiplies_values(n);
        if (is_told(d, n))
            pass_remark(d->c, n, "it would need quantizers of its own (-placement=all adds them)");
    }
}

void placement_mark(Decide *d) {
    module_each_graph(d->m, mark_recipe, d);
    module_each_graph(d->m, mark_anchors, d);
    module_each_graph(d->m, mark_followers, d);
    if (d->placing != PLACING_BETWEEN)
        return;
    module_each_graph(d->m, join_between, d);
    module_each_graph(d->m, mark_followers, d);
    module_each_graph(d->m, leave_between, d);
    leave_lone_products(d);
}
