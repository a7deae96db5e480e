/* Rules that find what they name and can do nothing with it: nodes without weights or a bias,
 * integers, which nothing quantizes. A rule that has an effect somewhere is not told. */
#include "passes/dynamic_form.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/decide.h"
#include "passes/recipe.h"
#include "passes/split_products.h"

typedef struct Effect {              /* of one rule */
    bool finds;                      /* something that it names */
    bool can[SCHEME_ROLES];          /* what it says of a role can be obeyed somewhere */
    const Value *held[SCHEME_ROLES]; /* of a role: a value that holds no floats */
    const Node *whole;               /* one whose products are within */
} Effect;

typedef struct Effects {
    const PassContext *c;
    const Uses *uses;
    Effect *of; /* by number of the rule */
} Effects;

static bool is_told(const SchemeRule *r) {
    return r->of != SCHEME_ALL && r->of != SCHEME_OP_OR_NODE && r->loc.source && !r->may_miss &&
           !r->weak;
}

/* What is not known may turn out to be a float. */
static bool holds_floats(const Value *v) {
    ElemType e = v->type.kind == TYPE_TENSOR ? type_real_elem(v->type) : ELEM_UNDEFINED;
    return !e || elem_is_float(e);
}

static void add_value(Effect *e, SchemeRole role, const Value *v) {
    if (!v)
        return;
    if (holds_floats(v))
        e->can[role] = true;
    else
        e->held[role] = v;
}

/* Of a product, of what has a form with weights of its own, or a table to look rows up in, which is
 * stored as weights are. */
static bool is_weight_of(const Node *n, size_t i) {
    const QuantRule *q = &n->def->quant;
    return takes_weight(n, i) || form_is_weight(&n->def->dynamic, i) ||
           (q->kind == QUANT_MOVE && q->move.looks_up && i == 0);
}

static bool has_weights(const Node *n) {
    for (size_t i = 0; n->def && i < n->n_in; i++)
        if (n->in[i] && value_is_const(n->in[i]) && holds_floats(n->in[i]) && is_weight_of(n, i))
            return true;
    return false;
}

/* A constant that is added behind counts, and one that correcting what weights lose would bring. */
static bool may_have_bias(const Effects *x, const Node *n) {
    if (!n->def || n->def->quant.kind != QUANT_MAC)
        return false;
    size_t at = (size_t)n->def->quant.mac.bias;
    return (at && (node_input(n, at) || has_weights(n))) || recipe_bias_of(x->uses, n);
}

static void look_at_nodes(Graph *g, void *ctx) {
    Effects *x = ctx;
    FOR_NODES(n, g) {
        bool kept = choice_why_kept(x->c, n); /* a walk of its own */
        RuleWalk walk = rules_begin(&x->c->scheme);
        rules_of_node(&walk, n);
        for (const SchemeRule *r; (r = rules_next(&walk));) {
            Effect *e = &x->of[r - x->c->scheme.rules];
            if (!is_told(r) || !rule_matches_node(r, n))
                continue;
            e->finds = true;
            e->can[SCHEME_WEIGHTS] |= !kept && has_weights(n);
            e->can[SCHEME_BIAS] |= !kept && may_have_bias(x, n);
            e->whole = whole_refusal(n) ? n : e->whole;
            for (size_t i = 0; i < n->n_in; i++)
                add_value(e, SCHEME_IN, n->in[i]);
            for (size_t i = 0; i < n->n_out; i++) {
                add_value(e, SCHEME_OUT, n->out[i]);
                add_value(e, SCHEME_ACTIVATIONS, n->out[i]);
            }
        }
    }
}

static bool is_read_as_weight(const Uses *uses, const Value *v) {
    const Use *use;
    size_t n = value_is_const(v) ? uses_of(uses, v, &use) : 0;
    for (size_t i = 0; i < n; i++)
        if (use[i].node && use[i].node->def && is_weight_of(use[i].node, use[i].index))
            return true;
    return false;
}

static void look_at_value(Value *v, void *ctx) {
    Effects *x = ctx;
    RuleWalk walk = rules_begin(&x->c->scheme);
    rules_of_value(&walk, v);
    for (const SchemeRule *r; (r = rules_next(&walk));) {
        if (!is_told(r) || !rule_matches_value(r, v))
            continue;
        Effect *e = &x->of[r - x->c->scheme.rules];
        e->finds = true;
        if (x->c->products_alone && !is_read_as_weight(x->uses, v))
            e->held[SCHEME_ITSELF] = v;
        else
            add_value(e, SCHEME_ITSELF, v);
    }
}

static void tell(const Effects *x, const SchemeRule *r, SchemeRole role, const Effect *e) {
    Diags *d = x->c->d;
    Loc at = r->flag ? r->loc : r->set[role].loc;
    if ((role == SCHEME_WEIGHTS || role == SCHEME_BIAS) && e->whole)
        diag_warning(d, at, "%sthis has no effect on '%s': %s", rule_source(d, r),
                     diag_name(d, rule_name(e->whole)), whole_refusal(e->whole));
    else if (role == SCHEME_WEIGHTS || role == SCHEME_BIAS)
        diag_warning(d, at, "%sthis has no effect: no node that '%s' names has %s",
                     rule_source(d, r), diag_name(d, str_from(r->pattern)),
                     role == SCHEME_BIAS ? "a bias that is quantized"
                                         : "weights that are quantized");
    else if (e->held[role] && holds_floats(e->held[role]))
        diag_warning(d, at, "%sthis has no effect on '%s': weights alone are quantized here",
                     rule_source(d, r), diag_name(d, e->held[role]->name));
    else if (e->held[role])
        diag_warning(d, at, "%sthis has no effect on '%s', which is %s: only floats are quantized",
                     rule_source(d, r), diag_name(d, e->held[role]->name),
                     type_text(e->held[role]->graph->module->arena, e->held[role]->type));
}

/* Of such rules compiler/without_effect.c has told where weights alone are quantized. */
static bool is_of_values(int role) {
    return role != SCHEME_WEIGHTS && role != SCHEME_ITSELF;
}

void choice_tell_idle(const PassContext *c, Module *m) {
    Effects x = {c, uses_new(m), NEW_ARRAY(m->arena, Effect, c->scheme.n + 1)};
    if (!c->scheme.n)
        return;
    module_each_graph(m, look_at_nodes, &x);
    module_each_value(m, look_at_value, &x);
    for (size_t i = 0; i < c->scheme.n; i++) {
        const SchemeRule *r = &c->scheme.rules[i];
        for (int role = 0; x.of[i].finds && role < SCHEME_ROLES; role++)
            if (r->set[role].said && !x.of[i].can[role] &&
                !(c->products_alone && is_of_values(role)))
                tell(&x, r, (SchemeRole)role, &x.of[i]);
    }
}
