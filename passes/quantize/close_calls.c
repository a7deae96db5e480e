/* Puts calls back that inline-functions spelled out and enclosed (passes/enclose.h), where nothing
 * between the borders was quantized: a runtime computes the one operator faster than its parts.
 * Where something was, the borders go and the body stays. Runs once types are operators, so that
 * what is quantized can be seen. */
#include "passes/edit.h"
#include "passes/enclose.h"
#include "passes/quantize/choice.h"

static const char PASS_NAME[] = "close-calls";

typedef struct Close {
    Module *m;
    PassContext *c;
    const Node **seen; /* by Node.id: the call that was last seen to need its results */
    bool *told;        /* by Node.id: what is said of it is not about the model */
    Node **nodes;      /* of the bodies of calls that are back */
    size_t n, cap;
    Str *domains; /* of calls that are gone */
    size_t n_domains, cap_domains;
} Close;

/* ---- what the body is by now ---- */

typedef struct Body {
    Close *s;
    const Node *begin;
    bool is_float;
} Body;

static Node *begin_of(const Node *end) {
    Node *n = end->prev;
    while (n && !(is_call_begin(n) && n->call == end->call))
        n = n->prev;
    return n;
}

static bool is_operand(const Node *begin, const Value *v) {
    bool is = v->def == begin;
    for (size_t i = 0; i < begin->n_in && !is; i++)
        is = begin->in[i] == v;
    return is;
}

/* Every node that the value is computed by, from the operands of the call on. */
static void walk_back(Body *b, const Value *v) {
    const Node *n = v->def;
    if (!n || is_operand(b->begin, v) || b->s->seen[n->id] == b->begin)
        return;
    b->s->seen[n->id] = b->begin;
    b->is_float =
        b->is_float && node_conversion(n) == CONVERT_NONE && !node_is(n, "DynamicQuantizeLinear");
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            walk_back(b, n->in[i]);
}

static bool body_is_float(Close *s, const Node *begin, const Node *end) {
    Body b = {s, begin, true};
    for (size_t i = 0; i < end->n_in; i++)
        if (end->in[i] && end->out[i])
            walk_back(&b, end->in[i]);
    return b.is_float;
}

/* ---- with the call, or without it ---- */

/* What computes nothing that anybody asks for stands between, too. */
static void give_up(Close *s, const Node *begin, const Node *end) {
    for (Node *n = begin->next; n != end; n = n->next) {
        s->told[n->id] = true;
        ARENA_PUSH(s->m->arena, s->nodes, s->n, s->cap, n);
    }
}

static void tell(PassContext *c, const Node *call) {
    const char *kept = choice_why_kept(c, call);
    bool is_open = c->placement != PLACEMENT_ALL && !c->products_alone;
    if (kept)
        pass_remark(c, call, "%s", kept);
    else
        pass_remark(c, call, "it stays one operator, as nothing within would become integers%s",
                    is_open ? " (-placement=all takes it apart)" : "");
}

static void put_back(Close *s, const Node *begin, Node *end) {
    Node *call = end->call;
    give_up(s, begin, end);
    call->graph = end->graph;
    call->n_in = begin->n_in;
    call->in = begin->in;
    call->n_out = end->n_out;
    for (size_t i = 0; i < end->n_out; i++)
        if (end->out[i])
            node_take_result(call, i, end->out[i]);
    node_insert_before(end, call);
    node_remove(end);
    tell(s->c, call);
}

/* What a node of the body makes has the name of the call's result; what is none, or is it already,
 * is passed on. */
static void yield(const Close *s, const Uses *uses, Node *end, size_t i) {
    Value *x = end->in[i], *y = end->out[i];
    bool made =
        x->def && !is_call_begin(x->def) && x->graph == y->graph && !uses_is_output(uses, x);
    for (size_t k = 0; k < i && made; k++)
        made = end->out[k] != x;
    if (made) {
        node_take_result(x->def, (size_t)x->index, y);
        value_replace(s->m, NULL, x, y);
        return;
    }
    Node *n = node_new(end->graph, STR_NONE, STR("Identity"), 1, 1);
    n->in[0] = x;
    n->loc = end->loc;
    node_from(n, end, PASS_NAME);
    node_take_result(n, 0, y);
    node_insert_before(end, n);
}

static void leave_end(Close *s, Node *end) {
    const Uses *uses = uses_new(s->m);
    if (end->call)
        ARENA_PUSH(s->m->arena, s->domains, s->n_domains, s->cap_domains, end->call->domain);
    for (size_t i = 0; i < end->n_out; i++)
        if (end->out[i])
            yield(s, uses, end, i);
    node_remove(end);
}

static void close_graph(Graph *g, void *ctx) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        const Node *begin = is_call_end(n) && n->call ? begin_of(n) : NULL;
        if (begin && body_is_float(ctx, begin, n))
            put_back(ctx, begin, n);
    }
}

static void leave_begin(const Close *s, Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            value_replace(s->m, NULL, n->out[i], n->in[i]);
    node_remove(n);
}

static void open_graph(Graph *g, void *ctx) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (is_call_end(n))
            leave_end(ctx, n);
        if (is_call_begin(n))
            leave_begin(ctx, n);
    }
}

static void find_borders(Graph *g, void *ctx) {
    const Close *s = ctx;
    FOR_NODES(n, g)
    s->told[n->id] = is_call_begin(n) || is_call_end(n);
}

bool pass_close_calls(Module *m, PassContext *c) {
    Close s = {.m = m,
               .c = c,
               .seen = NEW_ARRAY(m->arena, const Node *, m->n_nodes + 1),
               .told = NEW_ARRAY(m->arena, bool, m->n_nodes + 1)};
    module_each_graph(m, find_borders, &s);
    module_each_graph(m, close_graph, &s);
    pass_forget_remarks(c, s.told);
    edit_drop_unread(m, s.nodes, s.n);
    module_each_graph(m, open_graph, &s);
    for (size_t i = 0; i < s.n_domains; i++)
        edit_forget_import(m, s.domains[i]);
    edit_sweep(m);
    return true;
}
