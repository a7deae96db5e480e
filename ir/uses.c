/* Who uses a value: one walk that counts, one that stores. */
#include "ir/ir.h"

/* Uses of all values in one array, those of value `id` from start[id] to start[id + 1]. */
struct Uses {
    size_t n_values;
    size_t *start;
    Use *uses;
};

typedef void UseFn(Use use, const Value *v, void *ctx);

typedef struct Visit {
    UseFn *fn;
    void *ctx;
} Visit;

static void visit_graph(Graph *g, void *ctx) {
    Visit *visit = ctx;
    for (Node *n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i])
                visit->fn((Use){n, g, i}, n->in[i], visit->ctx);
    for (size_t i = 0; i < g->n_out; i++)
        visit->fn((Use){NULL, g, i}, g->out[i], visit->ctx);
}

static void each_use(Module *m, UseFn *fn, void *ctx) {
    module_each_graph(m, visit_graph, &(Visit){fn, ctx});
}

static void count_use(Use use, const Value *v, void *ctx) {
    (void)use;
    Uses *u = ctx;
    u->start[v->id + 1]++;
}

/* While filling, start[id] is where the next use of `id` goes. */
static void store_use(Use use, const Value *v, void *ctx) {
    Uses *u = ctx;
    u->uses[u->start[v->id]++] = use;
}

Uses *uses_new(Module *m) {
    Uses *u = NEW(m->scratch, Uses);
    u->n_values = m->n_values;
    u->start = NEW_ARRAY(m->scratch, size_t, u->n_values + 1);
    each_use(m, count_use, u);
    for (size_t i = 0; i < u->n_values; i++)
        u->start[i + 1] += u->start[i];
    u->uses = NEW_ARRAY(m->scratch, Use, u->start[u->n_values]);
    each_use(m, store_use, u);
    /* Every start has moved to the next one's place: move them back. */
    memmove(u->start + 1, u->start, u->n_values * sizeof *u->start);
    u->start[0] = 0;
    return u;
}

size_t uses_of(const Uses *u, const Value *v, const Use **out) {
    if (v->id >= u->n_values) {
        *out = NULL; /* made after the snapshot */
        return 0;
    }
    *out = u->uses + u->start[v->id];
    return u->start[v->id + 1] - u->start[v->id];
}

Node *uses_only_node(const Uses *u, const Value *v) {
    const Use *use;
    return uses_of(u, v, &use) == 1 ? use->node : NULL;
}

Node *uses_only_here(const Uses *u, const Value *v) {
    Node *n = uses_only_node(u, v);
    return n && n->graph == v->graph ? n : NULL;
}

bool value_is_output(const Value *v) {
    for (size_t i = 0; i < v->graph->n_out; i++)
        if (v->graph->out[i] == v)
            return true;
    return false;
}

bool uses_is_output(const Uses *u, const Value *v) {
    const Use *use;
    size_t n = uses_of(u, v, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node)
            return true;
    return false;
}

static void set_use(Use use, Value *to) {
    *(use.node ? &use.node->in[use.index] : &use.graph->out[use.index]) = to;
}

static void replace_use(Use use, const Value *v, void *ctx) {
    Value **from_to = ctx;
    if (v == from_to[0])
        set_use(use, from_to[1]);
}

void value_replace(Module *m, const Uses *u, Value *from, Value *to) {
    if (!u) {
        each_use(m, replace_use, (Value *[]){from, to});
        return;
    }
    const Use *uses;
    size_t n = uses_of(u, from, &uses);
    for (size_t i = 0; i < n; i++)
        set_use(uses[i], to);
}
