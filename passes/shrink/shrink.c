#include "passes/shrink/shrink.h"

static const Shrink shrinks[] = {
#define SHRINK(id, summary) {#id, summary, shrink_##id},
#include "passes/shrink/shrink.def"
#undef SHRINK
};

size_t shrink_count(void) {
    return sizeof shrinks / sizeof shrinks[0];
}

const Shrink *shrink_at(size_t i) {
    return &shrinks[i];
}

bool place_take(Places *p) {
    size_t place = p->seen++;
    return p->begin <= place && place < p->end;
}

/* ---- who is used ---- */

static void count_graph(Graph *g, void *ctx) {
    uint32_t *uses = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            uses[n->in[i]->id]++;
    for (size_t i = 0; i < g->n_out; i++)
        uses[g->out[i]->id]++;
}

uint32_t *shrink_uses(Module *m) {
    uint32_t *uses = NEW_ARRAY(m->arena, uint32_t, (size_t)m->n_values + 1);
    module_each_graph(m, count_graph, uses);
    return uses;
}

typedef struct GraphVisit {
    void (*fn)(Graph *g, void *ctx);
    void *ctx;
} GraphVisit;

static void visit_unless_function(Graph *g, void *ctx) {
    const GraphVisit *v = ctx;
    if (!graph_function(g))
        v->fn(g, v->ctx);
}

void shrink_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx) {
    module_each_graph(m, visit_unless_function, &(GraphVisit){fn, ctx});
}

/* ---- removing what an edit left without use ---- */

typedef struct Sweep {
    const uint32_t *before;
    uint32_t *now;
} Sweep;

static bool orphaned(const Sweep *s, const Value *v) {
    return s->before[v->id] && !s->now[v->id];
}

/* Takes back the uses that a node makes, its bodies included. */
static void forget_uses(Sweep *s, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i])
            s->now[n->in[i]->id]--;
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        for (size_t k = 0; k < attr_graphs(a); k++) {
            const Graph *g = a->v.g[k];
            for (const Node *inner = g->first; inner; inner = inner->next)
                forget_uses(s, inner);
            for (size_t j = 0; j < g->n_out; j++)
                s->now[g->out[j]->id]--;
        }
    }
}

static bool dead(const Sweep *s, const Node *n) {
    bool lost = false;
    for (size_t i = 0; i < n->n_out; i++) {
        if (n->out[i] && s->now[n->out[i]->id])
            return false;
        lost |= n->out[i] && orphaned(s, n->out[i]);
    }
    return lost;
}

static void sweep_nodes(Graph *g, void *ctx) {
    Sweep *s = ctx;
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (dead(s, n)) {
            forget_uses(s, n);
            node_remove(n);
        }
    }
}

static void sweep_consts(Graph *g, void *ctx) {
    const Sweep *s = ctx;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_consts; i++)
        if (!orphaned(s, g->consts[i]))
            g->consts[kept++] = g->consts[i];
    g->n_consts = kept;
}

static void expose_results(Graph *g, const Sweep *s) {
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && orphaned(s, n->out[i]))
            graph_add_output(g, n->out[i]);
}

void shrink_sweep(Module *m, const uint32_t *before, bool expose) {
    Sweep s = {before, shrink_uses(m)};
    if (expose)
        expose_results(m->graph, &s);
    else
        shrink_each_graph(m, sweep_nodes, &s);
    s.now = shrink_uses(m);
    module_each_graph(m, sweep_consts, &s);
    Graph *g = m->graph;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_in; i++)
        if (!orphaned(&s, g->in[i]))
            g->in[kept++] = g->in[i];
    g->n_in = kept;
    g->extra = STR_NONE; /* it names values and outputs by their old places */
}

/* ---- replacing values ---- */

static Value *target(Value **to, Value *v) {
    while (v && to[v->id])
        v = to[v->id];
    return v;
}

static void redirect_graph(Graph *g, void *ctx) {
    Value **to = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = target(to, n->in[i]);
    for (size_t i = 0; i < g->n_out; i++)
        g->out[i] = target(to, g->out[i]);
}

void shrink_redirect(Module *m, Value **to) {
    module_each_graph(m, redirect_graph, to);
}

void shrink_make_input(Module *m, Value *v, UniqueNames *names) {
    Graph *g = m->graph;
    if (v->graph != g || v->name.n == 0)
        v->name = unique_name(names, v->name); /* bodies may share names */
    v->kind = VALUE_INPUT;
    v->graph = g;
    v->def = NULL;
    v->index = 0;
    v->data = NULL;
    v->sparse = NULL;
    v->declared = true;
    v->extra = STR_NONE;
    ARENA_PUSH(m->arena, g->in, g->n_in, g->cap_in, v);
}
