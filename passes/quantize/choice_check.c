/* Rules of a scheme against the model: what each names, and whether it can be obeyed. See choice.h.
 */
#include "passes/quantize/choice.h"
#include "ir/provenance.h"
#include "passes/operator_names.h"

typedef struct Search { /* of one rule */
    const SchemeRule *rule;
    bool found, constant; /* something matches; some of it is a constant */
    bool other;           /* some of it is no bias */
    const Value *unlike;  /* it has another number of channels than the rule has scales */
    const Origin *origin; /* a node that matched before it became part of `into` */
    const Node *into;
    const Value *result; /* what the node gives now that made the value which the rule names */
} Search;

typedef struct Searches {
    const Scheme *scheme;
    const Uses *uses;
    Search *of; /* by the number of the rule */
} Searches;

static Search *search_of(const Searches *all, const SchemeRule *r) {
    return &all->of[r - all->scheme->rules];
}

static void look_at_origin(const Searches *all, const Node *n, const Origin *o) {
    const Node was = {.domain = o->domain, .op = o->op, .name = o->name};
    RuleWalk walk = rules_begin(all->scheme);
    rules_of_node(&walk, &was);
    for (const SchemeRule *r; (r = rules_next(&walk));) {
        Search *s = search_of(all, r);
        if (s->into || !rule_matches_node(r, &was))
            continue;
        s->origin = o;
        s->into = n->call ? n->call : n; /* borders are no nodes of the model */
    }
}

static void look_at_nodes(Graph *g, void *ctx) {
    const Searches *all = ctx;
    FOR_NODES(n, g) {
        RuleWalk walk = rules_begin(all->scheme);
        rules_of_node(&walk, n);
        for (const SchemeRule *r; (r = rules_next(&walk));)
            search_of(all, r)->found |= rule_matches_node(r, n);
        for (size_t i = 0; i < n->from.n; i++)
            if (n->from.from[i].op.s)
                look_at_origin(all, n, &n->from.from[i]);
    }
}

static bool is_unlike(const Quant *q, const Value *v) {
    if (!q || q->n_axes != 1 || q->block[0] > 1 || v->kind != VALUE_CONST || !v->data)
        return false;
    int axis = choice_axis(v, q->axis[0]);
    return axis >= v->data->rank || v->data->dims[axis] != (int64_t)q->n_scale;
}

static void look_at_value(Value *v, void *ctx) {
    const Searches *all = ctx;
    RuleWalk walk = rules_begin(all->scheme);
    rules_of_value(&walk, v);
    for (const SchemeRule *r; (r = rules_next(&walk));) {
        Search *s = search_of(all, r);
        if (!rule_matches_value(r, v))
            continue;
        s->found = true;
        s->unlike = !s->unlike && is_unlike(r->set[SCHEME_ITSELF].fixed, v) ? v : s->unlike;
        s->constant = s->constant || v->kind == VALUE_CONST;
        s->other = s->other || !is_only_bias(all->uses, v);
    }
}

/* Values that went with their nodes, where that is known. */
static void look_at_result(Value *v, void *ctx) {
    const Searches *all = ctx;
    for (size_t i = 0; i < all->scheme->n; i++) {
        Search *s = &all->of[i];
        if (!s->found && !s->result && value_became_of(v, s->rule->maker))
            s->result = v;
    }
}

static bool any_is_gone(const Searches *all) {
    for (size_t i = 0; i < all->scheme->n; i++)
        if (!all->of[i].found && all->of[i].rule->maker)
            return true;
    return false;
}

static Searches search(const Scheme *scheme, const Uses *uses, Module *m) {
    Searches all = {scheme, uses, NEW_ARRAY(m->arena, Search, scheme->n)};
    for (size_t i = 0; i < scheme->n; i++)
        all.of[i].rule = &scheme->rules[i];
    if (scheme->n) {
        module_each_value(m, look_at_value, &all);
        module_each_graph(m, look_at_nodes, &all);
        if (any_is_gone(&all))
            module_each_value(m, look_at_result, &all);
    }
    return all;
}

/* Both say it, and not the same. */
static bool differ(const SchemeSetting *x, const SchemeSetting *y) {
    bool type = (x->is_float || x->storage) && (y->is_float || y->storage);
    return (type && (x->is_float != y->is_float || x->storage != y->storage ||
                     x->has_range != y->has_range || x->lo != y->lo || x->hi != y->hi ||
                     (x->fixed && y->fixed && !quant_equal(x->fixed, y->fixed)))) ||
           (x->sym >= 0 && y->sym >= 0 && x->sym != y->sym) ||
           (x->pow2 >= 0 && y->pow2 >= 0 && x->pow2 != y->pow2) ||
           (x->reduce_range >= 0 && y->reduce_range >= 0 && x->reduce_range != y->reduce_range);
}

typedef struct Between {
    const PassContext *c;
    const Uses *uses;
    bool ok;
} Between;

/* `op Relu in int8q out int16q`: what of a value between two of them? */
static void look_between(Value *v, void *ctx) {
    Between *b = ctx;
    if (!v->def)
        return;
    RuleWalk walk = rules_begin(&b->c->scheme);
    rules_of_node(&walk, v->def);
    for (const SchemeRule *r; (r = rules_next(&walk));) {
        const SchemeSetting *in = &r->set[SCHEME_IN];
        const SchemeSetting *out =
            &r->set[r->set[SCHEME_OUT].said ? SCHEME_OUT : SCHEME_ACTIVATIONS];
        if (!in->said || !out->said || !differ(in, out) || !rule_matches_node(r, v->def) ||
            !rule_matches_reader(r, b->uses, v))
            continue;
        b->ok =
            diag_error(b->c->d, in->loc,
                       "'%s' is made by one node of this rule and read by another: what it "
                       "is as 'in' and as '%s' differs",
                       diag_name(b->c->d, v->name),
                       scheme_role_name(r->set[SCHEME_OUT].said ? SCHEME_OUT : SCHEME_ACTIVATIONS));
        return;
    }
}

/* A name that no operator has, in any domain. */
static bool unknown_op(const PassContext *c, const SchemeRule *r) {
    Str op = str_from(r->pattern), domain;
    if (r->of != SCHEME_OP || strpbrk(r->pattern, "*?:") ||
        operator_is_named(c->library, op, STR(""), &domain))
        return false;
    diag_error(c->d, r->loc, "there is no operator '%s'", diag_name(c->d, op));
    operator_did_you_mean(c->library, c->d, r->loc, op);
    return true;
}

/* Only weights have several scales. */
static bool check_grain(const PassContext *c, const Search *s) {
    const SchemeSetting *set = &s->rule->set[SCHEME_ITSELF];
    if (!s->found || s->constant || !(set->channel || set->block))
        return true;
    return diag_error(c->d, set->loc,
                      "'%s' is no weight: activations have one scale for each tensor, as an "
                      "accumulator cannot sum over several",
                      diag_name(c->d, str_from(s->rule->pattern)));
}

static bool check_channels(const PassContext *c, const Search *s) {
    const SchemeRule *r = s->rule;
    if (!s->unlike)
        return true;
    const Quant *q = r->set[SCHEME_ITSELF].fixed;
    const Tensor *t = s->unlike->data;
    return diag_error(
        c->d, r->loc, "%s'%s' is %s: %zu scales along axis %d are not one a channel",
        rule_source(c->d, r), diag_name(c->d, s->unlike->name),
        type_text(s->unlike->graph->module->arena, tensor_type(s->unlike->graph->module->arena, t)),
        q->n_scale, q->axis[0]);
}

/* The scale of a bias follows from those of the product. */
static void warn_of_bias(const PassContext *c, const Search *s) {
    const SchemeRule *r = s->rule;
    if (r->of == SCHEME_VALUE && s->found && !s->other &&
        r->set[SCHEME_ITSELF].storage != ELEM_INT32)
        diag_warning(c->d, r->loc,
                     "%s'%s' is a bias, where this has no effect: it is added at the scale of "
                     "the accumulator, or in float with 'bias float' of its node",
                     rule_source(c->d, r), diag_name(c->d, str_from(r->pattern)));
}

/* What could have been meant by the name of an operator that there is nowhere. Domains are
 * people's own, and runtimes have operators that no schema here tells of: no error. */
static void guess_op(const PassContext *c, const SchemeRule *r) {
    const char *colons = strstr(r->pattern, "::");
    Str op = str_from(colons ? colons + 2 : r->pattern), domain;
    if ((r->of == SCHEME_OP || r->of == SCHEME_OP_OR_NODE) && !strpbrk(r->pattern, "*?") &&
        !operator_is_named(c->library, op, STR(""), &domain))
        operator_did_you_mean(c->library, c->d, r->of == SCHEME_OP ? r->loc : LOC_NONE, op);
}

static void warn_unmatched(const PassContext *c, const Search *s) {
    const SchemeRule *r = s->rule;
    const char *pattern = diag_name(c->d, str_from(r->pattern));
    const char *read_as =
        r->of == SCHEME_OP || r->of == SCHEME_OP_OR_NODE ? rule_read_as(r->pattern) : NULL;
    if (r->may_miss)
        return;
    if (s->into)
        diag_warning(c->d, r->loc, "%s'%s' names %.*s '%s', which has become part of %s: name that",
                     rule_source(c->d, r), pattern, STR_ARG(s->origin->op),
                     diag_name(c->d, s->origin->name), node_text(s->into));
    else if (s->result)
        diag_warning(c->d, r->loc, "%s'%s' has become part of what gives '%s': name that",
                     rule_source(c->d, r), pattern, diag_name(c->d, s->result->name));
    else if (r->maker)
        diag_warning(c->d, r->loc, "%s'%s' is no value any more: %s was folded or left out",
                     rule_source(c->d, r), pattern, node_text(r->maker));
    else if (read_as)
        diag_warning(c->d, r->loc, "%s'%s' is %s once it is read: name that", rule_source(c->d, r),
                     pattern, read_as);
    else if (r->of == SCHEME_OP_OR_NODE)
        diag_warning(c->d, LOC_NONE, "%s=%s matches no operator type and no node", r->flag,
                     pattern);
    else if (r->flag)
        diag_warning(c->d, LOC_NONE, "%s: the model has no value '%s'", r->flag, pattern);
    else
        diag_warning(c->d, r->loc, "'%s' matches no %s of this model", pattern,
                     r->of == SCHEME_VALUE ? "value"
                     : r->of == SCHEME_OP  ? "node's operator"
                                           : "node");
    if (!s->into && !s->result && !r->maker && !read_as)
        guess_op(c, r);
}

typedef struct Weights {
    const PassContext *c;
    const SchemeRule *told;
    bool ok;
} Weights;

/* One accumulator has one scale, so there is one axis that a weight can have scales along. */
static bool check_axis(const PassContext *c, const Node *n, const Value *w) {
    OpCtx ctx = op_ctx(n, NULL);
    int axis = quant_weight_axis(&n->def->quant, &ctx);
    if (axis < 0)
        return true;
    RuleWalk walk = rules_begin(&c->scheme);
    rules_of_value(&walk, w);
    for (const SchemeRule *r; (r = rules_previous(&walk));) {
        const SchemeSetting *s = &r->set[SCHEME_ITSELF];
        if (!s->has_axis || !rule_matches_value(r, w) ||
            choice_axis(w, s->axis + (s->axis < 0 ? w->type.rank : 0)) == axis)
            continue;
        return diag_error(c->d, r->loc,
                          "%s'%s' has its output channels along axis %d: scales along axis %d are "
                          "for no kernel, as an accumulator cannot sum over several",
                          rule_source(c->d, r), diag_name(c->d, w->name), axis, s->axis);
    }
    return true;
}

/* A rule of which choice_is_symmetric thinks otherwise is told of once. */
static void look_at_weights(Graph *g, void *ctx) {
    Weights *x = ctx;
    FOR_NODES(n, g) {
        const Value *w = n->def && n->def->quant.kind == QUANT_MAC
                             ? node_input(n, (size_t)n->def->quant.mac.weight)
                             : NULL;
        if (!w || w->kind != VALUE_CONST)
            continue;
        x->ok = check_axis(x->c, n, w) && x->ok;
        Choice o = choice_of_weight(x->c, n, w);
        const SchemeRule *r = o.by[CHOICE_SYM];
        if (o.sym || o.fixed || o.is_float || !r || r == x->told || !(o.channel || o.block) ||
            !choice_is_symmetric(x->c, &o))
            continue;
        x->told = r;
        diag_warning(x->c->d, r->loc,
                     "%sweights in %s with a scale for each channel or block stay symmetric: "
                     "onnxruntime's kernels take one zero point; 'asym' goes with per-tensor, "
                     "with types of fewer or more bits than 8, with -weight-only and with "
                     "-target=c",
                     rule_source(x->c->d, r), elem_name(o.storage));
    }
}

/* Whether what the rule names is there, or may be in models that have it. */
static bool check_name(const PassContext *c, const Search *s) {
    const SchemeRule *r = s->rule;
    if (r->of == SCHEME_ALL || s->found)
        return true;
    if (!s->into && unknown_op(c, r))
        return false;
    warn_unmatched(c, s);
    return true;
}

bool choice_check_names(const PassContext *c, const Scheme *rules, Module *m) {
    Searches all = search(rules, uses_new(m), m);
    bool ok = true;
    for (size_t i = 0; i < rules->n; i++)
        ok = check_name(c, &all.of[i]) && ok;
    return ok;
}

bool choice_check(const PassContext *c, Module *m) {
    Between between = {c, uses_new(m), true};
    module_each_value(m, look_between, &between);
    Weights weights = {.c = c, .ok = true};
    module_each_graph(m, look_at_weights, &weights);
    bool ok = between.ok && weights.ok;
    ok = choice_check_reduced(c, between.uses, m) && ok;
    Searches all = search(&c->scheme, between.uses, m);
    for (size_t i = 0; i < c->scheme.n; i++) {
        const Search *s = &all.of[i];
        ok = check_grain(c, s) && ok;
        ok = check_channels(c, s) && ok;
        warn_of_bias(c, s);
        ok = check_name(c, s) && ok;
    }
    if (ok)
        choice_tell_idle(c, m);
    return ok;
}
