#include "passes/match_parts.h"

#include <stdarg.h>
#include <stdio.h>

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

bool match_miss(Matcher *x, const Node *at, const char *fmt, ...) {
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
    Mark before = mark(x);
    return (bind_to(x, g) && solve(x, g->next)) || give_up(x, before);
}

/* A Constant of the body. Lists are compared with the node that reads them. */
static bool solve_constant(Matcher *x, const Goal *g) {
    Mark before = mark(x);
    return (match_constant(x, g) && solve(x, g->next)) || give_up(x, before);
}

/* ---- nodes ---- */

static bool stated_fits(Matcher *x, const Value *pattern, const Value *v) {
    return function_type_fits(pattern->type, v->type) ||
           match_miss(x, v->def, "its result has another shape than %s",
                      type_text(x->graph->module->arena, pattern->type));
}

/* The operands of `n` in this order, then the rest. */
static bool solve_operands(Matcher *x, const Goal *g, const Node *n, bool swapped) {
    const Node *want = g->pattern->def;
    Goal goals[8];
    const Goal *next = g->next;
    size_t used = 0;
    for (size_t i = want->n_in; i-- > 0;) {
        Value *p = want->in[i], *v = node_input(n, swapped ? 1 - i : i);
        const Attr *list = match_list(g->frame, p);
        if (list) {
            if (!match_axes(x, n, i, list))
                return false;
            continue;
        }
        if (!p && !v)
            continue;
        if (!p || !v || used == sizeof goals / sizeof *goals)
            return match_miss(x, n, "it has other operands");
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
        return n ? match_miss(x, n, "it is no " STR_FMT, STR_ARG(want->op))
                 : match_miss(x, g->reader, "'" STR_FMT "' is no result of " STR_FMT,
                              STR_ARG(g->value->name), STR_ARG(want->op));
    if (x->m->n_nodes == MATCH_NODES || !bind_to(x, g))
        return false;
    for (size_t i = 1; i < n->n_out; i++)
        if (n->out[i])
            return match_miss(x, n, "it has further results");
    for (size_t i = want->n_in; i < n->n_in; i++)
        if (n->in[i])
            return match_miss(x, n, "it has further operands");
    if (!match_attrs(x, g, n) || !stated_fits(x, g->pattern, g->value))
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
            return match_miss(x, m->nodes[i], "its result has a quantization of its own");
        size_t n = uses_of(x->uses, m->nodes[i]->out[0], &use);
        for (size_t k = 0; k < n; k++) {
            bool inside = false;
            for (size_t j = 0; j < m->n_nodes; j++)
                inside = inside || use[k].node == m->nodes[j];
            if (!inside)
                return match_miss(x, m->nodes[i], "its result is read elsewhere, too");
        }
    }
    return true;
}

static bool solve(Matcher *x, const Goal *g) {
    if (!g)
        return is_closed(x);
    Mark before = mark(x);
    Value *had = bound_to(x, g->frame, g->pattern);
    if (had)
        return had == g->value
                   ? solve(x, g->next)
                   : match_miss(x, g->reader, "it reads '" STR_FMT "', not '" STR_FMT "'",
                                STR_ARG(g->value->name), STR_ARG(had->name));
    if (g->pattern->kind == VALUE_INPUT)
        return solve_operand(x, g);
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
