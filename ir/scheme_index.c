#include "ir/scheme_index.h"

void rule_numbers_add(RuleNumbers *r, Arena *a, size_t number) {
    ARENA_PUSH(a, r->at, r->n, r->cap, number);
}

static void enter_name(SchemeIndex *x, Str name, size_t number) {
    RuleNumbers *r = map_get(x->named, name);
    if (!r) {
        r = NEW(x->arena, RuleNumbers);
        map_set(x->named, name, r);
    }
    rule_numbers_add(r, x->arena, number);
}

/* "com.microsoft::Gelu" is an operator of that domain, or a node of that name. */
static void enter(SchemeIndex *x, const SchemeRule *r, size_t number) {
    const char *colons = r->pattern ? strstr(r->pattern, "::") : NULL;
    bool by_name = !colons || r->of != SCHEME_OP;
    bool by_op = colons && (r->of == SCHEME_OP || r->of == SCHEME_OP_OR_NODE);
    Str name = STR_NONE, op = STR_NONE;
    x->of_readers = x->of_readers || r->set[SCHEME_IN].said;
    if (!r->pattern || (by_name && !scheme_name_of(x->arena, r->pattern, &name)) ||
        (by_op && !scheme_name_of(x->arena, colons + 2, &op))) {
        rule_numbers_add(&x->open, x->arena, number);
        return;
    }
    if (by_name)
        enter_name(x, name, number);
    if (by_op)
        enter_name(x, op, number);
}

void scheme_index_last(Scheme *s, Arena *a) {
    SchemeIndex *x = s->index;
    if (!x || x->n != s->n - 1) { /* a copy of the scheme went on with it */
        x = s->index = NEW(a, SchemeIndex);
        x->arena = a;
        x->named = map_new(a);
    }
    for (; x->n < s->n; x->n++)
        enter(x, &s->rules[x->n], x->n);
}
