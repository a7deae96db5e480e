#include "passes/quantize/travel.h"

#include "passes/quantize/open.h"
#include "passes/quantize/sharing.h"

typedef struct Travel {
    PassContext *c;
    Module *m;
    const Uses *uses;
    Choice *of; /* by value id */
    bool any;
} Travel;

/* Whether a rule states its type, but no parameters. */
static bool is_source(const Choice *o) {
    const SchemeRule *r = o->by[CHOICE_TYPE];
    return r && r->of != SCHEME_ALL && !o->is_float && !o->fixed && o->storage;
}

/* Of what it had before it was decided anew nothing stands against what is said now. */
static bool takes(const Value *v, const Choice *o, bool said) {
    const SchemeRule *r = o->by[CHOICE_TYPE];
    bool open = !r || r->of == SCHEME_ALL || (r->weak && said);
    return !v->type.quant && v->kind != VALUE_CONST && !o->is_float && !o->fixed &&
           type_real_elem(v->type) == ELEM_FLOAT && open;
}

static bool hand_on(Travel *t, const Value *from, const Value *to) {
    const Choice *x = &t->of[from->id], *y = &t->of[to->id];
    if (!is_source(x) || from->type.quant || !takes(to, y, choice_said(x, CHOICE_TYPE)))
        return false;
    Choice taken = *x;
    taken.channel = y->channel;
    taken.block = y->block;
    t->of[to->id] = taken;
    Choice *kept = arena_copy(t->m->arena, &taken, sizeof taken);
    choice_set(t->c, t->m->arena, to, kept);
    return t->any = true;
}

/* Of two whose types are written and left open (`~ uint4q<?>`) and agree, a rule that says a
 * property of one says it of both, as it would of a type that goes on: else each gets a grid. */
static bool hand_on_property(Travel *t, ChoiceProperty p, const Value *from, const Value *to) {
    const Choice *x = &t->of[from->id], *y = &t->of[to->id];
    IntRange a = choice_range(x), b = choice_range(y);
    bool alike = !x->is_float && !y->is_float && !x->fixed && !y->fixed &&
                 x->storage == y->storage && x->has_range == y->has_range &&
                 (!x->has_range || (a.lo == b.lo && a.hi == b.hi));
    if (!alike || !opening_of(t->c, from) || !opening_of(t->c, to) || !choice_said(x, p) ||
        choice_said(y, p))
        return false;
    Choice *taken = arena_copy(t->m->arena, y, sizeof *y);
    taken->sym = p == CHOICE_SYM ? x->sym : y->sym;
    taken->pow2 = p == CHOICE_POW2 ? x->pow2 : y->pow2;
    taken->by[p] = x->by[p];
    t->of[to->id] = *taken;
    choice_set(t->c, t->m->arena, to, taken);
    return t->any = true;
}

static void share(Travel *t, const Value *from, const Value *to) {
    hand_on(t, from, to);
    hand_on_property(t, CHOICE_SYM, from, to);
    hand_on_property(t, CHOICE_POW2, from, to);
}

static bool read_by(const Travel *t, const Value *v, const Node *alone) {
    const Use *use;
    size_t n = uses_of(t->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (use[i].node != alone)
            return false;
    return n > 0;
}

static bool has_fixed_output(const Value *v) {
    return v->def && v->def->def && v->def->def->quant.fixed_output;
}

static bool is_passed_on(const Node *n) {
    return n->def && n->n_in && n->in[0] && is_follower(n);
}

static void go_forward(Travel *t, const Node *n) {
    for (size_t i = 0; is_passed_on(n) && i < n->n_out; i++)
        if (n->out[i])
            share(t, n->in[0], n->out[i]);
}

/* What a Concat or Where joins takes the type of the result, and that one theirs where all agree.
 */
static void join(Travel *t, const Node *n) {
    const Value *first = NULL;
    bool agree = true;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        if (!x || !quant_rule_is_data(&n->def->quant, i))
            continue;
        if (read_by(t, x, n) && !has_fixed_output(x))
            hand_on(t, n->out[0], x);
        first = first ? first : x;
        agree = agree && is_source(&t->of[x->id]) && choice_equal(&t->of[x->id], &t->of[first->id]);
    }
    if (first && agree)
        hand_on(t, first, n->out[0]);
}

static void go_back(Travel *t, const Node *n) {
    if (!n->def || !n->n_out || !n->out[0])
        return;
    if (n->def->quant.kind == QUANT_JOIN)
        join(t, n);
    else if (is_passed_on(n) && read_by(t, n->in[0], n) && !has_fixed_output(n->in[0]))
        share(t, n->out[0], n->in[0]);
}

static void walk(Graph *g, void *ctx) {
    Travel *t = ctx;
    FOR_NODES(n, g)
    go_forward(t, n);
    for (const Node *n = g->last; n; n = n->prev)
        go_back(t, n);
}

static void choose(Value *v, void *ctx) {
    Travel *t = ctx;
    t->of[v->id] = choice_of_value(t->c, t->uses, v);
}

/* ---- how far ---- */

typedef struct Reach { /* of one rule */
    Buf names;
    size_t n;
    bool type; /* it goes on; else another property */
} Reach;

typedef struct Reaches {
    const PassContext *c;
    Arena *arena;
    Map *of; /* by the rule */
} Reaches;

static Reach *reach_of(Reaches *all, const SchemeRule *rule) {
    Reach *r = map_get_at(all->of, rule);
    if (!r) {
        r = NEW(all->arena, Reach);
        r->names = buf_new(all->arena);
        map_set_at(all->of, rule, r);
    }
    return r;
}

/* The rule whose type the value took over; where that is its own, of another property. */
static const SchemeRule *reached_by(const PassContext *c, const Value *v, const Choice *o) {
    const OpenValue *own = opening_of(c, v);
    for (int p = CHOICE_TYPE; p <= CHOICE_POW2; p++)
        if (o->by[p] && o->by[p]->of != SCHEME_ALL && !(own && o->by[p] == &own->rule))
            return o->by[p];
    return NULL;
}

static void count_reached(Value *v, void *ctx) {
    enum { NAMED = 4 };
    Reaches *all = ctx;
    const Choice *o = choice_taken(all->c, v);
    const SchemeRule *rule = o ? reached_by(all->c, v, o) : NULL;
    if (!rule || !v->type.quant)
        return;
    Reach *r = reach_of(all, rule);
    r->type = r->type || rule == o->by[CHOICE_TYPE];
    if (r->n++ < NAMED)
        buf_fmt(&r->names, "%s%s", r->n > 1 ? ", " : "", diag_name(all->c->d, v->name));
}

static void tell_rule(const Reaches *all, const SchemeRule *rule) {
    Reach *r = map_get_at(all->of, rule);
    if (!r)
        return;
    Str names = buf_as_str(&r->names);
    diag(all->c->d, DIAG_REMARK, rule->loc,
         "%sthis%s spreads to %zu value%s fused with what it is said of: " STR_FMT "%s",
         rule_source(all->c->d, rule), r->type ? " type" : "", r->n, r->n > 1 ? "s" : "",
         STR_ARG(names), r->n > 4 ? ", ..." : "");
}

void types_travel(Module *m, PassContext *c, const Uses *uses) {
    Travel t = {.c = c, .m = m, .uses = uses, .of = NEW_ARRAY(m->arena, Choice, m->n_values)};
    c->choices = NULL; /* of an earlier run */
    module_each_value(m, choose, &t);
    do {
        t.any = false;
        module_each_graph(m, walk, &t);
    } while (t.any);
}

void types_tell(Module *m, const PassContext *c) {
    if (!c->choices)
        return;
    Reaches all = {.c = c, .arena = m->arena, .of = map_new(m->arena)};
    module_each_value(m, count_reached, &all);
    for (size_t i = 0; i < c->scheme.n; i++)
        tell_rule(&all, &c->scheme.rules[i]);
    for (size_t i = 0; c->open && i < c->open->n; i++)
        tell_rule(&all, &c->open->values[i]->rule);
}
