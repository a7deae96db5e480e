/* Functions: whether calls fit them, whether they call themselves, and how large the model gets
 * when all calls are inlined. */
#include "ir/ops/op.h"

enum { MAX_NODES = 1000 * 1000 };

/* A function in the graph of calls. Index n_functions stands for the main graph. */
typedef struct Caller {
    size_t *calls; /* which functions it calls, once per node */
    size_t n, cap;
    size_t nodes; /* its own, those of subgraphs included; later with all calls inlined */
    enum { NEW_CALLER, ACTIVE, DONE } state;
    size_t next;  /* the call to follow next */
    Map *formals; /* names of its attributes; made for the first call that has any */
} Caller;

typedef struct Calls {
    Module *m;
    Diags *d;
    unsigned flags; /* VerifyFlags */
    bool ok;
    Map *functions;           /* key -> Function** within module->functions */
    Caller *callers, *caller; /* all, and the one being filled in */
    Buf key;
} Calls;

/* ---- calls ---- */

/* Names of a function's attributes. */
static const Map *formals_of(Module *m, Caller *c, const Function *f) {
    if (c->formals)
        return c->formals;
    c->formals = map_new(m->arena);
    for (size_t i = 0; i < f->n_attrs; i++)
        map_set(c->formals, f->attrs[i], c);
    for (size_t i = 0; i < f->n_defaults; i++)
        map_set(c->formals, f->defaults[i].name, c);
    return c->formals;
}

/* Attributes that the function does not declare are no error: runtimes pass them by. */
static void warn_of_attrs(const Node *n, const Function *f, const Map *formals, Diags *d) {
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        if (map_get(formals, a->name))
            continue;
        diag_warning(d, a->loc.source ? a->loc : n->loc, "function %s has no attribute '%s'",
                     diag_name(d, f->name), diag_name(d, a->name));
        diag_did_you_mean_key(d, a->loc, a->name, formals);
    }
}

/* Fewer operands and results than the function has are legal, as are attributes left out. */
static bool check_call(const Node *n, const Function *f, Diags *d) {
    const char *name = diag_name(d, f->name);
    bool ok = true;
    if (n->n_in > f->body->n_in)
        ok = diag_error(d, n->loc, "function %s takes %zu operand%s, not %zu", name, f->body->n_in,
                        plural(f->body->n_in), n->n_in);
    if (n->n_out > f->body->n_out)
        ok = diag_error(d, n->loc, "function %s has %zu result%s, not %zu", name, f->body->n_out,
                        plural(f->body->n_out), n->n_out);
    if (!ok)
        diag_note(d, f->loc, "function %s", name);
    return ok;
}

static void collect_calls(Calls *c, const Graph *g);

static void collect_attr_calls(Calls *c, const Attr *attrs, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < attr_graphs(&attrs[i]); k++)
            collect_calls(c, attrs[i].v.g[k]);
}

static void collect_calls(Calls *c, const Graph *g) {
    Module *m = c->m;
    for (const Node *n = g->first; n; n = n->next) {
        c->caller->nodes++;
        Function **f = map_get(c->functions, function_key(&c->key, n->domain, n->op, n->overload));
        if (f) {
            size_t called = (size_t)(f - m->functions);
            c->ok = (n->misread || check_call(n, *f, c->d)) && c->ok;
            if (c->flags & VERIFY_WARN && !n->misread && n->n_attrs)
                warn_of_attrs(n, *f, formals_of(m, &c->callers[called], *f), c->d);
            ARENA_PUSH(m->arena, c->caller->calls, c->caller->n, c->caller->cap, called);
        }
        collect_attr_calls(c, n->attrs, n->n_attrs);
    }
}

/* ---- calls of calls ---- */

/* The functions on the stack from `of` on call each other, and the last of them calls `of`. */
static void report_cycle(Calls *c, const size_t *stack, size_t depth, size_t of) {
    Function *const *f = c->m->functions;
    c->ok = diag_error(c->d, f[of]->loc, "function %s calls itself",
                       function_title(c->m->arena, c->d, f[of]));
    for (size_t i = depth; stack[--i] != of;)
        diag_note(c->d, f[stack[i]]->loc, "by way of %s",
                  function_title(c->m->arena, c->d, f[stack[i]]));
}

/* Adds up nodes depth first, without recursion: a chain of functions may be long. `stack` has room
 * for all of them. */
static void inline_count(Calls *calls, size_t *stack, size_t root) {
    Caller *callers = calls->callers;
    size_t depth = 0;
    stack[depth++] = root;
    callers[root].state = ACTIVE;
    while (depth) {
        Caller *c = &callers[stack[depth - 1]];
        if (c->next == c->n) {
            c->state = DONE;
            depth--;
            continue;
        }
        Caller *callee = &callers[c->calls[c->next]];
        if (callee->state == NEW_CALLER) {
            callee->state = ACTIVE;
            stack[depth++] = c->calls[c->next];
            continue;
        }
        if (callee->state == ACTIVE)
            report_cycle(calls, stack, depth, c->calls[c->next]);
        else if (c->nodes <= MAX_NODES)
            c->nodes += callee->nodes;
        c->next++;
    }
}

bool verify_functions(Module *m, unsigned flags, Diags *d) {
    if (!m->n_functions)
        return true;
    Caller *callers = NEW_ARRAY(m->arena, Caller, m->n_functions + 1);
    Calls c = {m, d, flags, true, map_new(m->arena), callers, NULL, buf_new(m->arena)};
    for (size_t i = 0; i < m->n_functions; i++) {
        const Function *f = m->functions[i];
        Str key = arena_str(m->arena, function_key(&c.key, f->domain, f->name, f->overload));
        if (!map_get(c.functions, key))
            map_set(c.functions, key, &m->functions[i]);
        else
            c.ok = diag_error(d, f->loc, "the function is defined twice");
    }
    for (size_t i = 0; i <= m->n_functions; i++) {
        c.caller = &callers[i];
        const Function *f = i < m->n_functions ? m->functions[i] : NULL;
        const Graph *g = f ? f->body : m->graph;
        if (f)
            collect_attr_calls(&c, f->defaults, f->n_defaults);
        if (g)
            collect_calls(&c, g);
    }
    size_t *stack = NEW_ARRAY(m->arena, size_t, m->n_functions + 1);
    for (size_t i = m->n_functions + 1; i-- > 0;)
        if (callers[i].state == NEW_CALLER)
            inline_count(&c, stack, i);
    for (size_t i = 0; i <= m->n_functions; i++)
        if (callers[i].nodes > MAX_NODES) {
            Loc at = i < m->n_functions ? m->functions[i]->loc : m->graph->loc;
            c.ok = diag_error(d, at, "more than %d nodes once functions are inlined", MAX_NODES);
        }
    return c.ok;
}
