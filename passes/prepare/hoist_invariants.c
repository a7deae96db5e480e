/* What a Loop carries (or a Scan has as state) and its body hands on unchanged is the same in every
 * iteration: the body reads it from outside, as bodies may, and it is no operand any more.
 * Exporters hand weights into loops like that; as captured constants they are weights to everybody.
 *
 * A loop that runs zero times yields what it was given: what goes is that, always. Only what is not
 * quantized goes, and what is known from outside as well as the body states it. */
#include "ir/ops/loop.h"
#include "passes/edit.h"

static const char PASS_NAME[] = "hoist-invariants";

typedef struct Hoist {
    Module *m;
    PassContext *c;
    Value **now; /* by value id: what stands for it, NULL for itself */
    size_t n;    /* values that existed at the start: what `now` has room for */
    Node **left; /* nodes that may be of no use any more */
    size_t n_left, cap_left;
    UniqueNames *names;
} Hoist;

/* Where the carried values stand in the lists of the node and of its body. */
typedef struct Carried {
    Graph *body;
    size_t n, in, body_in, body_out;
} Carried;

/* ---- which values ---- */

static bool find_carried(const Hoist *h, const Node *n, Carried *k) {
    Type few[OP_FEW];
    if (!n->def || !n->typed || !domain_is_onnx(n->domain) || !n->def->enter)
        return false;
    OpCtx c = op_ctx_few(n, few, h->c->d);
    if (node_is(n, "Loop"))
        *k = (Carried){((const LoopAttrs *)n->typed)->body, loop_carried(&c), 2, 2, 1};
    else if (node_is(n, "Scan"))
        *k = (Carried){((const ScanAttrs *)n->typed)->body,
                       n->n_in - (size_t)((const ScanAttrs *)n->typed)->num_scan_inputs, 0, 0, 0};
    return node_opset(n) >= 11 && k->body; /* before, a Loop has to carry something */
}

static Value *value_now(const Hoist *h, Value *v) {
    while (v->id < h->n && h->now[v->id])
        v = h->now[v->id];
    return v;
}

/* What the value is a copy of, within the body. */
static Value *source_in(Hoist *h, const Graph *body, Value *v) {
    for (v = value_now(h, v); v->def && v->def->graph == body && node_is(v->def, "Identity");
         v = value_now(h, v->def->in[0]))
        ARENA_PUSH(h->m->arena, h->left, h->n_left, h->cap_left, v->def);
    return v;
}

/* Is all that is known of the body's value known of what it starts as? */
static bool knows_as_much(Type start, Type in) {
    if (start.kind != TYPE_TENSOR || in.kind != TYPE_TENSOR || start.quant || in.quant ||
        start.elem != in.elem || (in.rank >= 0 && start.rank != in.rank))
        return false;
    for (int i = 0; i < in.rank; i++)
        if (in.dims[i].value >= 0 && start.dims[i].value != in.dims[i].value)
            return false;
    return true;
}

static bool is_invariant(Hoist *h, const Node *n, const Carried *k, size_t i) {
    Value *start = n->in[k->in + i], *in = k->body->in[k->body_in + i];
    if (!start || !knows_as_much(start->type, in->type) || (n->out[i] && n->out[i]->type.quant))
        return false;
    const Value *next = source_in(h, k->body, k->body->out[k->body_out + i]);
    return next == in || next == value_now(h, start);
}

/* ---- what becomes of them ---- */

static void stands_for(Hoist *h, Value *gone, Value *start) {
    if (!start->stat && start->kind != VALUE_CONST)
        start->stat = gone->stat;
    h->now[gone->id] = start;
}

static void remove_value(Value **list, size_t *n, size_t at) {
    memmove(list + at, list + at + 1, (*n - at - 1) * sizeof *list);
    --*n;
}

static void hoist_value(Hoist *h, Node *n, const Carried *k, size_t i) {
    Value *start = n->in[k->in + i];
    stands_for(h, k->body->in[k->body_in + i], start);
    if (n->out[i])
        stands_for(h, n->out[i], start);
    remove_value(n->in, &n->n_in, k->in + i);
    remove_value(n->out, &n->n_out, i);
    remove_value(k->body->in, &k->body->n_in, k->body_in + i);
    remove_value(k->body->out, &k->body->n_out, k->body_out + i);
}

static void hoist_graph(Hoist *h, Graph *g);

static void hoist_node(Hoist *h, Node *n) {
    Carried k = {0};
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t b = 0; b < attr_graphs(&n->attrs[i]); b++)
            hoist_graph(h, n->attrs[i].v.g[b]);
    if (!find_carried(h, n, &k))
        return;
    size_t kept = 0;
    for (size_t i = 0; i < k.n; i++) {
        if (is_invariant(h, n, &k, kept))
            hoist_value(h, n, &k, kept);
        else
            kept++;
    }
    if (kept < k.n) /* which is by index */
        edit_forget_outputs(k.body);
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            n->out[i]->index = (int)i;
    if (!n->n_out)
        node_remove(n);
}

/* Inner loops first: what they hand on may be what an outer one does. */
static void hoist_graph(Hoist *h, Graph *g) {
    FOR_NODES(n, g)
    hoist_node(h, n);
}

/* ---- readers ---- */

static bool has_node(const Value *v) {
    return (size_t)v->index < v->def->n_out && v->def->out[v->index] == v;
}

/* A graph yields values of its own: what is none, or has no node any more, an Identity makes. */
static void yield_now(Hoist *h, Graph *g, size_t i) {
    Value *v = g->out[i], *from = value_now(h, v);
    bool own = v->kind == VALUE_NODE && v->graph == g;
    if (v == from || (own && has_node(v))) /* yielded twice */
        return;
    Node *n = node_new(g, STR_NONE, STR("Identity"), 1, 1);
    n->in[0] = from;
    n->loc = from->loc;
    node_from_value(n, v, PASS_NAME);
    if (own) { /* keeps its name */
        node_take_result(n, 0, v);
    } else {
        g->out[i] = node_add_output(n, 0, unique_name(h->names, v->name), from->type);
    }
    graph_append(g, n);
}

static void read_now(Graph *g, void *ctx) {
    Hoist *h = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            n->in[i] = value_now(h, n->in[i]);
}

static void yield_all(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_out; i++)
        yield_now(ctx, g, i);
}

bool pass_hoist_invariants(Module *m, PassContext *c) {
    Hoist h = {.m = m,
               .c = c,
               .now = NEW_ARRAY(m->arena, Value *, m->n_values + 1),
               .n = m->n_values,
               .names = unique_names_new(m)};
    hoist_graph(&h, m->graph);
    module_each_graph(m, read_now, &h);
    module_each_graph(m, yield_all, &h);
    edit_drop_unread(m, h.left, h.n_left);
    module_forget_infos(m);
    return true;
}
