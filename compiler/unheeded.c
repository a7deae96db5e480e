/* Rules in the text that speak of nothing but what is decided otherwise: what is written stays, so
 * they do nothing. A text that was decided by its own scheme obeys it, and nothing is said. */
#include "compiler/doubtful.h"

#include "passes/quantize/choice.h"

typedef struct Heed { /* of one rule: the type that it states */
    size_t obeyed, other;
    const Value *first; /* of the others */
} Heed;

typedef struct Look {
    PassContext own; /* with the rules that are judged */
    const Uses *uses;
    const Scheme *rules;
    Heed *of;   /* by index of the rule */
    bool *seen; /* by id of a weight, which several nodes may read */
} Look;

static bool is_obeyed(const Choice *x, const Quant *q) {
    return x->fixed ? quant_equal(x->fixed, q) : !x->is_float && x->storage == q->storage;
}

static void count(Look *l, const Choice *x, const Value *v) {
    const SchemeRule *r = x->by[CHOICE_TYPE];
    const Quant *q = v->type.quant;
    if (!r || !q->storage || r < l->rules->rules || r >= l->rules->rules + l->rules->n)
        return;
    Heed *h = &l->of[r - l->rules->rules];
    if (is_obeyed(x, q)) {
        h->obeyed++;
    } else {
        h->first = h->other++ ? h->first : v;
    }
}

static bool is_decided(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && v->type.quant;
}

static void look_at_value(Value *v, void *ctx) {
    Look *l = ctx;
    if (!is_decided(v) || v->kind == VALUE_CONST)
        return;
    Choice x = choice_of_value(&l->own, l->uses, v);
    count(l, &x, v);
}

static void look_at_weights(Graph *g, void *ctx) {
    Look *l = ctx;
    FOR_NODES(n, g) {
        const QuantRule *r = n->def ? &n->def->quant : NULL;
        const Value *w = r && r->kind == QUANT_MAC ? node_input(n, (size_t)r->mac.weight) : NULL;
        if (!is_decided(w) || w->kind != VALUE_CONST || l->seen[w->id])
            continue;
        l->seen[w->id] = true;
        Choice x = choice_of_weight(&l->own, n, w);
        count(l, &x, w);
    }
}

static void tell(Module *m, const SchemeRule *r, const Heed *h, Diags *d) {
    const Quant *q = h->first->type.quant;
    Buf is = buf_new(m->arena);
    if (q->n_scale == 1)
        quant_print(&is, q);
    else
        buf_fmt(&is, "%sq", elem_name(q->storage));
    Str others = h->other > 1 ? arena_strf(m->arena, ", and %zu other%s", h->other - 1,
                                           h->other > 2 ? "s" : "")
                              : STR("");
    diag_warning(d, r->loc,
                 "the type that this rule states has no effect on '%s', which is " STR_FMT
                 " as written" STR_FMT "; -redecide=GLOB decides anew",
                 diag_name(d, h->first->name), STR_ARG(buf_as_str(&is)), STR_ARG(others));
}

void warn_of_unheeded(Module *m, const PassContext *c) {
    Look l = {.own = *c, .uses = uses_new(m)};
    l.own.scheme = c->open ? c->scheme : m->rules; /* else others are told to be idle as a whole */
    l.own.open = NULL;
    l.own.choices = NULL;
    l.rules = &l.own.scheme;
    l.of = NEW_ARRAY(m->arena, Heed, l.rules->n);
    l.seen = NEW_ARRAY(m->arena, bool, m->n_values);
    if (!l.rules->n)
        return;
    module_each_value(m, look_at_value, &l);
    module_each_graph(m, look_at_weights, &l);
    for (size_t i = 0; i < l.rules->n; i++) {
        const SchemeRule *r = &l.rules->rules[i];
        if (r->loc.source && !r->flag && l.of[i].other && !l.of[i].obeyed)
            tell(m, r, &l.of[i], c->d);
    }
}
