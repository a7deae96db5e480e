#include "passes/quantize/choice.h"

#include "passes/quantize/open.h"

bool is_only_bias(const Uses *uses, const Value *v) {
    const Use *use;
    size_t n = v->kind == VALUE_CONST ? uses_of(uses, v, &use) : 0, biases = 0;
    for (size_t i = 0; i < n; i++) {
        const QuantRule *q = use[i].node && use[i].node->def ? &use[i].node->def->quant : NULL;
        biases +=
            q && q->kind == QUANT_MAC && q->mac.bias > 0 && use[i].index == (size_t)q->mac.bias;
    }
    return n && biases == n;
}

/* ---- settling ---- */

static void apply(Choice *c, const SchemeSetting *s, const SchemeRule *r) {
    if (!s->said)
        return;
    if (s->is_float || s->storage) {
        c->is_float = s->is_float;
        c->fixed = s->fixed;
        c->by[CHOICE_TYPE] = r;
    }
    if (s->storage) {
        c->storage = s->storage;
        c->has_range = s->has_range;
        c->exact_range = s->exact_range;
        c->lo = s->lo;
        c->hi = s->hi;
    }
    if (s->sym != SCHEME_UNSAID) {
        c->sym = s->sym;
        c->by[CHOICE_SYM] = r;
    }
    if (s->pow2 != SCHEME_UNSAID) {
        c->pow2 = s->pow2;
        c->by[CHOICE_POW2] = r;
    }
    if (s->reduce_range != SCHEME_UNSAID) {
        c->reduce_range = s->reduce_range;
        c->by[CHOICE_REDUCE] = r;
    }
    if (!s->has_grain)
        return;
    /* block(32) alone leaves the channels as they are */
    if (s->channel || !s->block || s->per_tensor)
        c->channel = s->channel;
    c->block = s->block;
    c->by[CHOICE_GRAIN] = r;
}

static Choice default_activations(const PassContext *c) {
    const TargetType *t = &c->target->activations;
    if (c->open && c->open->storage)
        return (Choice){.storage = c->open->storage, .sym = c->open->sym};
    return (Choice){.storage = t->storage, .sym = t->sym};
}

Choice choice_of_activations(const PassContext *c) {
    Choice x = default_activations(c);
    for (size_t i = 0; i < c->scheme.n; i++)
        if (c->scheme.rules[i].of == SCHEME_ALL)
            apply(&x, &c->scheme.rules[i].set[SCHEME_ACTIVATIONS], &c->scheme.rules[i]);
    return x;
}

/* What is known of the type of a value that is open: what it was, before any rule; what the text
 * says of it, after all of them. */
static void apply_opening(Choice *x, const PassContext *c, const Value *v, bool marked) {
    const OpenValue *o = opening_of(c, v);
    if (o && o->marked == marked)
        apply(x, &o->rule.set[SCHEME_ITSELF], &o->rule);
}

/* Float, and left so. */
static bool stays_as_written(const PassContext *c, const Value *v) {
    return !v->type.quant && !is_open(c, v);
}

/* Whether a product of activations reads it as what else are weights. */
static bool is_second_operand(const Uses *uses, const Value *v) {
    const Use *use;
    size_t n = uses_of(uses, v, &use);
    for (size_t i = 0; i < n; i++) {
        const QuantRule *r = use[i].node && use[i].node->def ? &use[i].node->def->quant : NULL;
        if (r && r->kind == QUANT_MAC && r->mac.weight && use[i].index == (size_t)r->mac.weight)
            return v->kind != VALUE_CONST;
    }
    return false;
}

const char *choice_faulty(const PassContext *c, const Value *v) {
    if (!v->def || !c->target->n_faults)
        return NULL;
    FaultSite s = fault_site(v->def, NULL);
    const TargetFault *f = target_fault(c->target, FAULT_FLOAT, FAULT_NODE, &s);
    return f ? fault_words(f, c->target, v->def) : NULL;
}

void choice_set(PassContext *c, Arena *a, const Value *v, const Choice *o) {
    if (!c->choices)
        c->choices = map_new(a);
    map_set_at(c->choices, v, (Choice *)o);
}

const Choice *choice_taken(const PassContext *c, const Value *v) {
    return c->choices ? map_get_at(c->choices, v) : NULL;
}

Choice choice_of_value(const PassContext *c, const Uses *uses, const Value *v) {
    const TargetPage *t = c->target;
    const Choice *taken = choice_taken(c, v);
    if (taken)
        return *taken;
    Choice x = default_activations(c);
    if (t->has_second && is_second_operand(uses, v)) {
        x.storage = t->second.storage;
        x.sym = t->second.sym;
    }
    apply_opening(&x, c, v, false);
    RuleWalk walk = rules_begin(&c->scheme);
    rules_of_value(&walk, v);
    rules_of_readers(&walk, uses, v);
    if (v->def)
        rules_of_node(&walk, v->def);
    for (const SchemeRule *r; (r = rules_next(&walk));) {
        if (r->of == SCHEME_ALL) {
            apply(&x, &r->set[SCHEME_ACTIVATIONS], r);
        } else if (r->of == SCHEME_VALUE) {
            if (rule_matches_value(r, v))
                apply(&x, &r->set[SCHEME_ITSELF], r);
        } else {
            if (r->set[SCHEME_IN].said && rule_matches_reader(r, uses, v))
                apply(&x, &r->set[SCHEME_IN], r);
            if (v->def && rule_matches_node(r, v->def)) {
                apply(&x, &r->set[SCHEME_ACTIVATIONS], r);
                apply(&x, &r->set[SCHEME_OUT], r);
            }
        }
    }
    apply_opening(&x, c, v, true);
    x.is_float = x.is_float || stays_as_written(c, v) || (!x.fixed && choice_faulty(c, v));
    return x;
}

/* Few integers are all used where each scale has a zero point that it needs: numbers that lie more
 * on one side of 0 than on the other leave some idle else. It costs nothing where weights are
 * dequantized before they are multiplied. */
static bool has_zeros_of_its_own(const PassContext *c, const Choice *x) {
    IntRange r = choice_range(x);
    return c->weights_alone && c->target->zeros != TARGET_ZEROS_NONE && !x->by[CHOICE_SYM] &&
           !x->fixed && r.hi - r.lo > 1 && r.hi - r.lo < 16;
}

Choice choice_of_weight(const PassContext *c, const Node *n, const Value *w) {
    const TargetType *t = &c->target->weights;
    Choice x = {.storage = t->storage, .sym = t->sym, .channel = t->channel};
    apply_opening(&x, c, w, false);
    RuleWalk walk = rules_begin(&c->scheme);
    rules_of_value(&walk, w);
    rules_of_node(&walk, n);
    for (const SchemeRule *r; (r = rules_next(&walk));) {
        if (rule_matches_value(r, w))
            apply(&x, &r->set[SCHEME_ITSELF], r);
        else if (r->of == SCHEME_ALL || rule_matches_node(r, n))
            apply(&x, &r->set[SCHEME_WEIGHTS], r);
    }
    apply_opening(&x, c, w, true);
    x.is_float = x.is_float || stays_as_written(c, w);
    x.sym = x.sym && !has_zeros_of_its_own(c, &x);
    return x;
}

const SchemeRule *choice_to_keep(const PassContext *c, const Node *n) {
    RuleWalk walk = rules_begin(&c->scheme);
    rules_of_node(&walk, n);
    for (const SchemeRule *r; (r = rules_previous(&walk));) {
        if (r->keep != SCHEME_UNSAID && (r->of == SCHEME_ALL || rule_matches_node(r, n)))
            return r;
    }
    return NULL;
}

const char *choice_why_kept(const PassContext *c, const Node *n) {
    const SchemeRule *r = choice_to_keep(c, n);
    if (!r || !r->keep)
        return NULL;
    return r->flag && strcmp(r->flag, "-only") == 0 ? "not among the nodes to quantize"
                                                    : "kept float as asked";
}

bool choice_float_bias(const PassContext *c, const Node *n) {
    RuleWalk walk = rules_begin(&c->scheme);
    rules_of_node(&walk, n);
    for (const SchemeRule *r; (r = rules_previous(&walk));) {
        if (r->set[SCHEME_BIAS].said && (r->of == SCHEME_ALL || rule_matches_node(r, n)))
            return r->set[SCHEME_BIAS].is_float;
    }
    return false;
}

IntRange choice_range(const Choice *c) {
    IntRange stated = {c->lo, c->hi};
    if (c->exact_range)
        return stated;
    return c->has_range ? params_part(stated, c->sym, c->reduce_range)
                        : params_range(c->storage, c->sym, c->reduce_range);
}

bool choice_said(const Choice *c, ChoiceProperty p) {
    const SchemeRule *r = c->by[p];
    return r && r->of != SCHEME_ALL && !r->weak;
}

bool choice_equal(const Choice *x, const Choice *y) {
    if (x->is_float || y->is_float)
        return x->is_float && y->is_float;
    if (x->fixed || y->fixed)
        return x->fixed && y->fixed && quant_equal(x->fixed, y->fixed);
    IntRange a = choice_range(x), b = choice_range(y);
    return x->storage == y->storage && x->sym == y->sym && x->pow2 == y->pow2 && a.lo == b.lo &&
           a.hi == b.hi;
}

bool choice_is_symmetric(const PassContext *c, const Choice *o) {
    TargetZeros zeros = c->target->zeros;
    bool multiplied = zeros == TARGET_ZEROS_NONE || !c->weights_alone;
    return o->sym || (multiplied && zeros != TARGET_ZEROS_CHANNEL && elem_bits(o->storage) == 8);
}

int choice_axis(const Value *w, int axis) {
    bool turned = w->data && w->data->rank == 2 && pass_made(&w->from, PASS_gemm_to_matmul);
    return turned && axis < 2 ? 1 - axis : axis;
}
