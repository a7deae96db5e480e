#include "passes/match.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { MATCH_VALUES = 96 };

/* A body that is being matched: the function's own, or that of one which it calls. */
typedef struct Frame {
    const Function *f;
    const Node *call; /* in the body of `up`; NULL: the function itself */
    const struct Frame *up;
    int depth;
} Frame;

/* What is still to be shown: that `value` is what `pattern` stands for. */
typedef struct Goal {
    const Frame *frame;
    const Value *pattern;
    Value *value;
    const Node *reader; /* of the value; NULL: the chain ends with it */
    const struct Goal *next;
} Goal;

typedef struct Matcher {
    Library *library;
    const Uses *uses;
    Match *m;
    const Graph *graph;
    struct {
        const Frame *frame;
        const Value *pattern;
        Value *value;
    } bound[MATCH_VALUES];
    size_t n_bound;
    bool explain;
} Matcher;

typedef struct Mark {
    size_t bound, nodes, attrs;
} Mark;

static Mark mark(const Matcher *x) {
    return (Mark){x->n_bound, x->m->n_nodes, x->m->n_attrs};
}

static bool give_up(Matcher *x, Mark to) {
    x->n_bound = to.bound;
    x->m->n_nodes = to.nodes;
    x->m->n_attrs = to.attrs;
    return false;
}

__attribute__((format(printf, 3, 4))) static bool miss(Matcher *x, const Node *at, const char *fmt,
                                                       ...) {
    Match *m = x->m;
    if (!x->explain || m->n_nodes <= m->reached || !at)
        return false;
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->reached = m->n_nodes;
    m->stopped = at;
    m->why = arena_strf(at->graph->module->arena, "%s", text).s;
    return false;
}

static bool solve(Matcher *x, const Goal *g);

/* ---- what stands for what ---- */

static Value *bound_to(const Matcher *x, const Frame *frame, const Value *pattern) {
    for (size_t i = 0; i < x->n_bound; i++)
        if (x->bound[i].frame == frame && x->bound[i].pattern == pattern)
            return x->bound[i].value;
    return NULL;
}

static bool bind_to(Matcher *x, const Goal *g) {
    if (x->n_bound == MATCH_VALUES)
        return false;
    x->bound[x->n_bound].frame = g->frame;
    x->bound[x->n_bound].pattern = g->pattern;
    x->bound[x->n_bound++].value = g->value;
    return true;
}

static bool solve_operand(Matcher *x, const Goal *g) {
    const Frame *f = g->frame;
    if (f->up) {
        for (size_t i = 0; i < f->f->body->n_in; i++)
            if (f->f->body->in[i] == g->pattern) {
                Value *outer = node_input(f->call, i);
                Goal up = {f->up, outer, g->value, g->reader, g->next};
                return outer && solve(x, &up);
            }
        return false;
    }
    Value *had = bound_to(x, f, g->pattern);
    if (had)
        return had == g->value ? solve(x, g->next)
                               : miss(x, g->reader, "it reads '" STR_FMT "', not '" STR_FMT "'",
                                      STR_ARG(g->value->name), STR_ARG(had->name));
    Mark before = mark(x);
    return (bind_to(x, g) && solve(x, g->next)) || give_up(x, before);
}

/* ---- numbers and attributes ---- */

/* Constants are written with few digits, or in types that have few. */
static bool is_near(double has, double want, ElemType e) {
    double bound = e == ELEM_FLOAT16 ? 0x1p-10 : e == ELEM_BFLOAT16 ? 0x1p-7 : 3e-5;
    return fabs(has - want) <= bound * fabs(want);
}

/* What an attribute of a node in a body is: a literal, or (`*formal`) an attribute of the function
 * that is matched; NULL where it is neither. */
static const Attr *literal(const Frame *f, const Attr *a, Str *formal) {
    *formal = STR_NONE;
    while (a && attr_is_ref(a)) {
        if (!f->up) {
            *formal = a->ref;
            return NULL;
        }
        const Attr *given = attr_find(f->call->attrs, f->call->n_attrs, a->ref);
        a = given ? given : function_default(f->f, a->ref);
        f = given ? f->up : f;
    }
    return a;
}

/* The same, but for rounding. */
static bool attr_near(const Attr *want, const Attr *has, int rank) {
    if (want && has && want->kind == ATTR_FLOAT && has->kind == ATTR_FLOAT && !attr_is_ref(has))
        return is_near((double)has->v.f[0], (double)want->v.f[0], ELEM_FLOAT);
    return attr_same(want, has, rank);
}

static bool bind_attr(Matcher *x, Str formal, const Attr *is) {
    Match *m = x->m;
    const Attr *had = attr_find(m->attrs, m->n_attrs, formal);
    if (had)
        return attr_same(had, is, -1); /* the same number twice, not two that are near a third */
    if (m->n_attrs == MATCH_ATTRS || attr_is_ref(is))
        return false;
    m->attrs[m->n_attrs] = *is;
    m->attrs[m->n_attrs++].name = formal;
    return true;
}

/* What nobody can override; through a Constant node, too. */
static const Tensor *constant(const Value *v) {
    return v && v->kind != VALUE_INPUT ? value_data(v) : NULL;
}

/* A number with axes of its own may give what reads it more axes than the body's number does. */
static bool adds_axes(const Value *number, const Node *reader) {
    int own = value_rank(number);
    for (size_t i = 0; reader && i < reader->n_in; i++)
        if (reader->in[i] && !constant(reader->in[i]) && value_rank(reader->in[i]) >= own)
            return false;
    return own != 0;
}

static bool number_fits(Matcher *x, const Goal *g, const Attr *a) {
    const Tensor *t = constant(g->value);
    bool one = t && t->data && t->count == 1 && elem_is_float(t->elem);
    double has = one ? tensor_float(t, 0) : 0;
    Str formal;
    const Attr *want = literal(g->frame, a, &formal);
    if (!one)
        return miss(x, g->reader, "'" STR_FMT "' is no constant number", STR_ARG(g->value->name));
    if (adds_axes(g->value, g->reader))
        return miss(x, g->reader, "'" STR_FMT "' may add axes to its result",
                    STR_ARG(g->value->name));
    if (formal.n) {
        float *room = NEW(x->graph->module->arena, float);
        *room = (float)has;
        return bind_attr(x, formal, &(Attr){.kind = ATTR_FLOAT, .n = 1, .v.f = room});
    }
    if (!want || want->kind != ATTR_FLOAT)
        return false;
    return is_near(has, (double)want->v.f[0], t->elem) ||
           miss(x, g->reader, "'" STR_FMT "' is %g, not %g", STR_ARG(g->value->name), has,
                (double)want->v.f[0]);
}

/* A Constant of the body. Lists are compared with the node that reads them. */
static bool solve_constant(Matcher *x, const Goal *g) {
    const Attr *a = &g->pattern->def->attrs[0];
    Mark before = mark(x);
    bool fits = str_is(a->name, "value_float") && number_fits(x, g, a);
    return (fits && solve(x, g->next)) || give_up(x, before);
}

/* ---- nodes ---- */

static bool stated_fits(Matcher *x, const Value *pattern, const Value *v) {
    return function_type_fits(pattern->type, v->type) ||
           miss(x, v->def, "its result has another shape than %s",
                type_text(x->graph->module->arena, pattern->type));
}

/* Attributes that the body's node does not have are those that go without saying. */
static bool attrs_fit(Matcher *x, const Goal *g, const Node *n) {
    const Node *want = g->pattern->def;
    int rank = value_rank(node_input(n, 0));
    Attr room, other;
    for (size_t i = 0; i < want->n_attrs; i++) {
        const Attr *a = &want->attrs[i], *has = attr_effective(n, a->name, &room);
        Str formal;
        const Attr *is = literal(g->frame, a, &formal);
        if (formal.n ? !has || !bind_attr(x, formal, has) : !attr_near(is, has, rank))
            return miss(x, n, "its attribute " STR_FMT " is another", STR_ARG(a->name));
    }
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        bool listed = str_is(a->name, "axes"); /* compared as an operand */
        if (!listed && !attr_find(want->attrs, want->n_attrs, a->name) &&
            !attr_same(attr_effective(want, a->name, &other), a, rank))
            return miss(x, n, "it has an attribute " STR_FMT, STR_ARG(a->name));
    }
    return true;
}

static bool same_axes(const int64_t *x, size_t n, const Attr *want, int rank) {
    bool set[MAX_RANK] = {false};
    for (size_t i = 0; i < n; i++) {
        int64_t at = x[i] < 0 ? x[i] + rank : x[i];
        if (at < 0 || at >= rank)
            return false;
        set[at] = true;
    }
    for (size_t i = 0; i < want->n; i++) {
        int64_t at = want->v.i[i] < 0 ? want->v.i[i] + rank : want->v.i[i];
        if (at < 0 || at >= rank || !set[at])
            return false;
    }
    return n == want->n;
}

static const Attr *list_of(const Frame *f, const Value *pattern) {
    const Node *n = pattern ? pattern->def : NULL;
    Str formal;
    return n && node_is_constant(n) ? literal(f, node_attr(n, "value_ints"), &formal) : NULL;
}

/* A list of axes, which is an operand or an attribute. */
static bool axes_fit(Matcher *x, const Node *n, size_t i, const Attr *want) {
    const Tensor *t = constant(node_input(n, i));
    const Attr *a = node_attr(n, "axes");
    int rank = value_rank(n->in[0]);
    int64_t list[MAX_RANK];
    size_t count = 0;
    for (; t && t->elem == ELEM_INT64 && count < t->count && count < MAX_RANK; count++)
        list[count] = tensor_int(t, count);
    for (; !t && attr_holds(a, ATTR_INTS) && count < a->n && count < MAX_RANK; count++)
        list[count] = a->v.i[count];
    if (rank < 0)
        return miss(x, n, "the rank of its operand is not known");
    return same_axes(list, count, want, rank) || miss(x, n, "its axes are others");
}

/* The operands of `n` in this order, then the rest. */
static bool solve_operands(Matcher *x, const Goal *g, const Node *n, bool swapped) {
    const Node *want = g->pattern->def;
    Goal goals[8];
    const Goal *next = g->next;
    size_t used = 0;
    for (size_t i = want->n_in; i-- > 0;) {
        Value *p = want->in[i], *v = node_input(n, swapped ? 1 - i : i);
        const Attr *list = list_of(g->frame, p);
        if (list) {
            if (!axes_fit(x, n, i, list))
                return false;
            continue;
        }
        if (!p && !v)
            continue;
        if (!p || !v || used == sizeof goals / sizeof *goals)
            return miss(x, n, "it has other operands");
        goals[used] = (Goal){g->frame, p, v, n, next};
        next = &goals[used++];
    }
    return solve(x, next);
}

static bool solve_node(Matcher *x, const Goal *g) {
    const Node *want = g->pattern->def;
    Node *n = g->value->def;
    if (!n || n->graph != x->graph || !str_eq(n->op, want->op) ||
        !domain_equal(n->domain, want->domain) || g->value->index != g->pattern->index)
        return n ? miss(x, n, "it is no " STR_FMT, STR_ARG(want->op))
                 : miss(x, g->reader, "'" STR_FMT "' is no result of " STR_FMT,
                        STR_ARG(g->value->name), STR_ARG(want->op));
    if (x->m->n_nodes == MATCH_NODES || !bind_to(x, g))
        return false;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i])
            return miss(x, n, "it has further results");
    for (size_t i = want->n_in; i < n->n_in; i++)
        if (n->in[i])
            return miss(x, n, "it has further operands");
    if (!attrs_fit(x, g, n) || !stated_fits(x, g->pattern, g->value))
        return false;
    x->m->nodes[x->m->n_nodes++] = n;
    Mark before = mark(x);
    bool swaps = n->def && n->def->commutes && n->n_in == 2 && want->n_in == 2;
    return solve_operands(x, g, n, false) ||
           (swaps && (give_up(x, before), solve_operands(x, g, n, true)));
}

/* What stands for any of its overloads in a body: a call of what is no operator. */
const Overloads *match_overloads(Library *l, const Node *n) {
    typedef struct Called {
        const Node *n;
        const Overloads *of;
    } Called;
    l->calls = l->calls ? l->calls : map_new(l->arena);
    Called *call = map_get(l->calls, (Str){(const char *)&n, sizeof n});
    if (call)
        return call->of;
    call = NEW(l->arena, Called);
    *call = (Called){n, op_find(n->domain, n->op) ? NULL : library_find(l, n->domain, n->op)};
    map_set(l->calls, (Str){(const char *)&call->n, sizeof n}, call);
    return call->of;
}

static bool solve_call(Matcher *x, const Goal *g, const Overloads *of) {
    const Node *call = g->pattern->def;
    Mark before = mark(x);
    for (size_t i = 0; g->frame->depth < MATCH_DEPTH && i < of->n; i++) {
        const Function *f = of->items[i];
        if ((size_t)g->pattern->index >= f->body->n_out)
            continue;
        Frame inner = {f, call, g->frame, g->frame->depth + 1};
        Goal body = {&inner, f->body->out[g->pattern->index], g->value, g->reader, g->next};
        if ((bind_to(x, g) && solve(x, &body)) || give_up(x, before))
            return true;
    }
    return false;
}

/* Nothing but the match reads what is between, and no decision is written of it. */
static bool is_closed(Matcher *x) {
    Match *m = x->m;
    for (size_t i = 1; i < m->n_nodes; i++) {
        const Use *use;
        if (m->nodes[i]->out[0]->type.quant)
            return miss(x, m->nodes[i], "its result has a quantization of its own");
        size_t n = uses_of(x->uses, m->nodes[i]->out[0], &use);
        for (size_t k = 0; k < n; k++) {
            bool inside = false;
            for (size_t j = 0; j < m->n_nodes; j++)
                inside = inside || use[k].node == m->nodes[j];
            if (!inside)
                return miss(x, m->nodes[i], "its result is read elsewhere, too");
        }
    }
    return true;
}

static bool solve(Matcher *x, const Goal *g) {
    if (!g)
        return is_closed(x);
    Mark before = mark(x);
    if (g->pattern->kind == VALUE_INPUT)
        return solve_operand(x, g);
    Value *had = bound_to(x, g->frame, g->pattern);
    if (had)
        return had == g->value ? solve(x, g->next)
                               : miss(x, g->reader, "it reads '" STR_FMT "', not '" STR_FMT "'",
                                      STR_ARG(g->value->name), STR_ARG(had->name));
    if (node_is_constant(g->pattern->def))
        return solve_constant(x, g);
    const Overloads *of = match_overloads(x->library, g->pattern->def);
    return of ? solve_call(x, g, of) : solve_node(x, g) || give_up(x, before);
}

bool match_function(Library *l, const Uses *uses, const Function *f, Value *result, bool explain,
                    Match *out) {
    Matcher x = {.library = l, .uses = uses, .m = out, .graph = result->graph, .explain = explain};
    Frame frame = {.f = f};
    out->f = f;
    out->n_nodes = out->n_attrs = 0;
    Goal goal = {&frame, f->body->out[0], result, NULL, NULL};
    if (f->body->n_in > MATCH_NODES || !solve(&x, &goal))
        return false;
    for (size_t i = 0; i < f->body->n_in; i++)
        out->in[i] = bound_to(&x, &frame, f->body->in[i]);
    return true;
}

static size_t size_of(Library *l, const Function *f, int depth) {
    size_t size = 0;
    for (const Node *n = f->body->first; n && depth < MATCH_DEPTH; n = n->next) {
        const Overloads *of = match_overloads(l, n);
        size_t most = node_is_constant(n) ? 0 : 1;
        for (size_t i = 0; of && i < of->n; i++) {
            size_t s = size_of(l, of->items[i], depth + 1);
            most = s > most ? s : most;
        }
        size += most;
    }
    return size;
}

size_t match_size(Library *l, const Function *f) {
    return size_of(l, f, 0);
}
