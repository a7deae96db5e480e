#include "passes/candidates.h"

#include "passes/match.h"

enum {
    NUMBER = 0,    /* bits of Makers: a constant number */
    FIRST_OP,      /* ... and operators, in the order in which they are met */
    MANY_OPS = 62, /* all that are left */
    OTHER = 63,    /* no body has it */
};

static const Makers ANYTHING = ~(Makers)0;

typedef struct OpEntry {
    int bit;
    Candidates last; /* whose chains may end with it */
} OpEntry;

struct CandidateTable {
    Arena *arena;
    Library *library;
    Map *ops; /* name -> OpEntry */
};

/* A body that is looked at, of a function or of one that it calls. */
typedef struct BodyOf {
    const Function *f;
    const Node *call; /* in the body of `up`; NULL: the function itself */
    const struct BodyOf *up;
    int depth;
} BodyOf;

static OpEntry *entry_of(CandidateTable *t, Str op) {
    OpEntry *e = map_get(t->ops, op);
    if (e)
        return e;
    size_t bit = FIRST_OP + map_size(t->ops);
    e = NEW(t->arena, OpEntry);
    e->bit = bit < MANY_OPS ? (int)bit : MANY_OPS;
    map_set(t->ops, op, e);
    return e;
}

/* ---- what may make a value of a body ---- */

static Makers makers_of(CandidateTable *t, const BodyOf *w, const Value *v, Operands *before);

/* The operand of a function is whatever stands there: in a call within a body that is known. */
static Makers makers_of_operand(CandidateTable *t, const BodyOf *w, const Value *v,
                                Operands *before) {
    const Graph *body = w->f->body;
    for (size_t i = 0; w->up && i < body->n_in; i++)
        if (body->in[i] == v)
            return makers_of(t, w->up, node_input(w->call, i), before);
    return makers_of(t, w, NULL, before);
}

static Makers makers_of_call(CandidateTable *t, const BodyOf *w, const Value *v,
                             const Overloads *of, Operands *before) {
    Makers all = 0;
    for (size_t i = 0; i < of->n; i++) {
        BodyOf inner = {of->items[i], v->def, w, w->depth + 1};
        if ((size_t)v->index < inner.f->body->n_out)
            all |= makers_of(t, &inner, inner.f->body->out[v->index], before);
    }
    return all;
}

static Operands operands_of(CandidateTable *t, const BodyOf *w, const Node *n, Ending *e) {
    Operands o = {{ANYTHING, ANYTHING}};
    for (size_t i = 0; i < 2 && i < n->n_in; i++)
        o.of[i] = makers_of(t, w, n->in[i], e ? &e->before[i] : NULL);
    return o;
}

/* What may make the value, and (where `before` is not NULL) the operands of those: added to it. */
static Makers makers_of(CandidateTable *t, const BodyOf *w, const Value *v, Operands *before) {
    const Node *n = v ? v->def : NULL;
    if (v && v->kind == VALUE_INPUT && w->up)
        return makers_of_operand(t, w, v, before);
    const Overloads *of = n ? match_overloads(t->library, n) : NULL;
    if (of && w->depth < MATCH_DEPTH)
        return makers_of_call(t, w, v, of, before);
    bool number = n && node_attr(n, "value_float"), list = n && node_attr(n, "value_ints");
    Operands o = {{ANYTHING, ANYTHING}};
    if (before && n && !of && !number && !list)
        o = operands_of(t, w, n, NULL);
    for (int i = 0; before && i < 2; i++)
        before->of[i] |= o.of[i];
    if (!n || of || list) /* a list may be an attribute */
        return ANYTHING;
    return (Makers)1 << (number ? NUMBER : entry_of(t, n->op)->bit);
}

/* ---- the table ---- */

static Candidate *candidate_of(CandidateTable *t, Candidates *of, const Function *f) {
    for (size_t i = 0; i < of->n; i++)
        if (of->items[i].f == f)
            return &of->items[i];
    Candidate c = {.f = f, .size = match_size(t->library, f)};
    ARENA_PUSH(t->arena, of->items, of->n, of->cap, c);
    size_t at = of->n - 1;
    for (; at > 0 && of->items[at - 1].size < c.size; at--)
        of->items[at] = of->items[at - 1];
    of->items[at] = c;
    return &of->items[at];
}

/* Under each operator that may be the last of the chain of `f`, which `w` is a part of. */
static void add(CandidateTable *t, const Function *f, const BodyOf *w) {
    const Node *last = w->f->body->out[0]->def;
    const Overloads *of = last ? match_overloads(t->library, last) : NULL;
    for (size_t i = 0; of && w->depth < MATCH_DEPTH && i < of->n; i++)
        add(t, f, &(BodyOf){of->items[i], last, w, w->depth + 1});
    if (!last || of)
        return;
    Ending e = {0};
    e.last = operands_of(t, w, last, &e);
    for (size_t i = last->n_in; i < 2; i++)
        e.before[i] = (Operands){{ANYTHING, ANYTHING}};
    Candidate *c = candidate_of(t, &entry_of(t, last->op)->last, f);
    ARENA_PUSH(t->arena, c->endings, c->n, c->cap, e);
}

CandidateTable *candidates_new(Arena *a, Library *l, Str only) {
    CandidateTable *t = NEW(a, CandidateTable);
    *t = (CandidateTable){a, l, map_new(a)};
    const Map *all = library_functions(l, LIBRARY_CHAINS);
    for (size_t i = 0; i < map_size(all); i++) {
        const Overloads *of = map_value(all, i);
        for (size_t k = 0; k < of->n; k++)
            if (function_is_recognised(of->items[k]) &&
                (!only.n || str_eq(only, of->items[k]->name)))
                add(t, of->items[k], &(BodyOf){.f = of->items[k]});
    }
    return t;
}

/* ---- nodes of a model ---- */

const Candidates *candidates_of(const CandidateTable *t, const Node *last) {
    const OpEntry *e = map_get(t->ops, last->op);
    return e && e->last.n ? &e->last : NULL;
}

static Makers makers_here(const CandidateTable *t, const Value *v) {
    const Tensor *number = v && v->kind != VALUE_INPUT ? value_data(v) : NULL;
    if (!v)
        return ANYTHING;
    if (number)
        return (Makers)1 << (number->count == 1 ? NUMBER : OTHER);
    const OpEntry *e = v->def ? map_get(t->ops, v->def->op) : NULL;
    return (Makers)1 << (e ? e->bit : OTHER);
}

static Operands operands_here(const CandidateTable *t, const Node *n) {
    return (Operands){{makers_here(t, node_input(n, 0)), makers_here(t, node_input(n, 1))}};
}

LastNode candidates_node(const CandidateTable *t, const Node *n) {
    return (LastNode){.n = n, .has.last = operands_here(t, n)};
}

/* In this order, or the other way around. */
static bool may_be(const Operands *want, const Operands *has, bool swapped) {
    return want->of[0] & has->of[swapped] && want->of[1] & has->of[!swapped];
}

/* The operands of what makes operand i; their order counts for nothing here. */
static bool may_stand_before(const CandidateTable *t, const Operands *want, LastNode *last, int i) {
    Operands *has = &last->has.before[i];
    const Value *v = node_input(last->n, (size_t)i);
    if (!last->known[i])
        *has = v && v->def && !value_data(v) ? operands_here(t, v->def)
                                             : (Operands){{ANYTHING, ANYTHING}};
    last->known[i] = true;
    return may_be(want, has, false) || may_be(want, has, true);
}

bool candidate_may_end(const CandidateTable *t, const Candidate *c, LastNode *last) {
    bool swaps = last->n->def && last->n->def->commutes;
    Makers any = last->has.last.of[0] | last->has.last.of[1];
    for (const Ending *e = c->endings, *end = e + c->n; e < end; e++)
        for (int swapped = 0; e->last.of[0] & any && e->last.of[1] & any && swapped <= swaps;
             swapped++) {
            if (may_be(&e->last, &last->has.last, swapped) &&
                may_stand_before(t, &e->before[0], last, swapped) &&
                may_stand_before(t, &e->before[1], last, !swapped))
                return true;
        }
    return false;
}
