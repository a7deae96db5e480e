/* Rules that state a type of values which all stay float: nothing that makes or reads them computes
 * on integers. They are told, as nobody sees it in the model. */
#include "passes/quantize/placement.h"
#include "passes/quantize/travel.h"

typedef struct Idle { /* of one rule */
    bool obeyed;
    size_t n;
    const Value *first;
} Idle;

typedef struct Look {
    const PassContext *c;
    const Uses *uses;
    Idle *of; /* by number of the rule */
} Look;

/* That which settles the type, if it was written about some values, not about all. */
static const SchemeRule *rule_of(const Look *l, const Choice *x) {
    const SchemeRule *r = x->by[CHOICE_TYPE], *all = l->c->scheme.rules;
    bool written = r && r >= all && r < all + l->c->scheme.n && r->loc.source && !r->flag;
    return written && r->of != SCHEME_ALL && !x->is_float ? r : NULL;
}

static void look_at_value(Value *v, void *ctx) {
    const Look *l = ctx;
    if (v->kind == VALUE_CONST || type_real_elem(v->type) != ELEM_FLOAT)
        return;
    Choice x = choice_of_value(l->c, l->uses, v);
    const SchemeRule *r = rule_of(l, &x);
    if (!r)
        return;
    Idle *idle = &l->of[r - l->c->scheme.rules];
    idle->obeyed = idle->obeyed || v->type.quant;
    if (!v->type.quant)
        idle->first = idle->n++ ? idle->first : v;
}

void types_tell_idle(Module *m, const PassContext *c, const Uses *uses) {
    Look l = {.c = c, .uses = uses, .of = NEW_ARRAY(m->arena, Idle, c->scheme.n + 1)};
    Placing placing = placing_of(c);
    bool fewer = placing == PLACING_PRODUCTS || placing == PLACING_BETWEEN;
    module_each_value(m, look_at_value, &l);
    for (size_t i = 0; i < c->scheme.n; i++) {
        const Idle *idle = &l.of[i];
        if (!idle->n || idle->obeyed)
            continue;
        diag_warning(c->d, c->scheme.rules[i].loc,
                     "the type that this rule states has no effect on '%s'%s: %s float, as nothing "
                     "there computes on integers%s",
                     diag_name(c->d, idle->first->name),
                     arena_others(m->arena, ", and ", idle->n - 1, ""),
                     idle->n > 1 ? "they stay" : "it stays",
                     fewer ? "; -placement=all makes more nodes integer" : "");
    }
}
