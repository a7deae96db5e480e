/* reduce-range where there is no bit to give: of a type of one bit, or of a range that another rule
 * states. What one rule says of both is told where it is read. */
#include "passes/quantize/choice.h"

typedef struct Reduced {
    const PassContext *c;
    const Uses *uses;
    bool *told; /* by rule */
    bool ok;
} Reduced;

static void look_at(Reduced *x, const Choice *o) {
    const SchemeRule *r = o->by[CHOICE_REDUCE];
    IntRange range = choice_range(o);
    if (!o->reduce_range || !r || x->told[r - x->c->scheme.rules] || o->is_float || o->fixed ||
        (!o->exact_range && range.hi - range.lo > 1))
        return;
    x->told[r - x->c->scheme.rules] = true;
    if (o->exact_range)
        diag_warning(x->c->d, r->loc, "%s has no effect where the range is stated: %lld to %lld",
                     r->flag ? r->flag : "reduce-range", (long long)o->lo, (long long)o->hi);
    else
        x->ok = diag_error(x->c->d, r->loc, "%s%s has one bit, and none to spare",
                           rule_source(x->c->d, r),
                           elem_bits(o->storage) == 1 ? elem_name(o->storage) : "the type");
}

static void look_at_value(Value *v, void *ctx) {
    Reduced *x = ctx;
    if (v->kind == VALUE_CONST || !elem_is_float(type_real_elem(v->type)))
        return;
    Choice o = choice_of_value(x->c, x->uses, v);
    look_at(x, &o);
}

static void look_at_weights(Graph *g, void *ctx) {
    Reduced *x = ctx;
    FOR_NODES(n, g) {
        const QuantRule *q = n->def ? &n->def->quant : NULL;
        const Value *w = q && q->kind == QUANT_MAC ? node_input(n, (size_t)q->mac.weight) : NULL;
        if (!w || w->kind != VALUE_CONST)
            continue;
        Choice o = choice_of_weight(x->c, n, w);
        look_at(x, &o);
    }
}

static bool any_reduces(const Scheme *s) {
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SCHEME_ROLES; k++)
            if (s->rules[i].set[k].reduce_range == 1)
                return true;
    return false;
}

bool choice_check_reduced(const PassContext *c, const Uses *uses, Module *m) {
    Reduced x = {.c = c, .uses = uses, .told = NEW_ARRAY(m->arena, bool, c->scheme.n), .ok = true};
    if (!any_reduces(&c->scheme))
        return true;
    module_each_graph(m, look_at_weights, &x);
    module_each_value(m, look_at_value, &x);
    return x.ok;
}
