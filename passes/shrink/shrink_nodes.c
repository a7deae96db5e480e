/* Shrinks that take nodes away. */
#include "passes/pass.h"
#include "passes/shrink/shrink.h"

/* ---- nodes: what remains is a part of the graph, cut out ---- */

typedef struct Cut {
    Module *m;
    Places *places;
    bool *gone; /* by Node.id */
    UniqueNames *names;
} Cut;

static void choose_nodes(Graph *g, void *ctx) {
    Cut *cut = ctx;
    FOR_NODES(n, g)
    cut->gone[n->id] = place_take(cut->places);
}

static void unlink_nodes(Graph *g, void *ctx) {
    const Cut *cut = ctx;
    FOR_NODES(n, g)
    if (cut->gone[n->id])
        node_remove(n);
}

static void feed(Cut *cut, Value *v) {
    if (v && v->def && cut->gone[v->def->id])
        shrink_make_input(cut->m, v, cut->names);
}

static void feed_graph(Graph *g, void *ctx) {
    Cut *cut = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        feed(cut, n->in[i]);
    for (size_t i = 0; i < g->n_out; i++)
        feed(cut, g->out[i]);
}

void shrink_nodes(Module *m, Places *places) {
    Cut cut = {m, places, NEW_ARRAY(m->arena, bool, (size_t)m->n_nodes + 1), unique_names_new(m)};
    uint32_t *before = shrink_uses(m);
    shrink_each_graph(m, choose_nodes, &cut);
    shrink_each_graph(m, unlink_nodes, &cut);
    size_t kept = 0;
    for (size_t i = 0; i < m->graph->n_out; i++) {
        Value *v = m->graph->out[i];
        if (!v->def || !cut.gone[v->def->id])
            m->graph->out[kept++] = v;
    }
    m->graph->n_out = kept;
    shrink_each_graph(m, feed_graph, &cut);
    shrink_sweep(m, before, true);
}

/* ---- bypass ---- */

static bool same_type(Type x, Type y) {
    bool quants = x.quant && y.quant ? quant_equal(x.quant, y.quant) : x.quant == y.quant;
    return x.kind == TYPE_TENSOR && y.kind == TYPE_TENSOR && x.elem == y.elem &&
           x.tilde == y.tilde && quants && type_same_shape(x, y);
}

typedef struct Bypass {
    Places *places;
    Value **to;
} Bypass;

static Value *stand_in(const Node *n) {
    if (n->n_out == 0 || !n->out[0])
        return NULL;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && same_type(n->in[i]->type, n->out[0]->type))
            return n->in[i];
    return NULL;
}

static void bypass_graph(Graph *g, void *ctx) {
    Bypass *b = ctx;
    FOR_NODES(n, g) {
        Value *x = stand_in(n);
        if (x && place_take(b->places))
            b->to[n->out[0]->id] = x;
    }
}

void shrink_bypass(Module *m, Places *places) {
    uint32_t *before = shrink_uses(m);
    Bypass b = {places, NEW_ARRAY(m->arena, Value *, (size_t)m->n_values + 1)};
    module_each_graph(m, bypass_graph, &b);
    shrink_redirect(m, b.to);
    shrink_sweep(m, before, false);
}

/* ---- flatten: a body in place of If, Loop, Scan ---- */

static void adopt(Node *at, Node *n, UniqueNames *names) {
    node_remove(n);
    node_insert_before(at, n);
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            n->out[i]->name = unique_name(names, n->out[i]->name);
}

/* The last outputs of a body are those of its node; a Loop's first is the condition. */
static void flatten_node(Module *m, Node *at, Graph *body, Value **to, UniqueNames *names) {
    Graph *outer = at->graph;
    for (size_t i = 0; i < body->n_in; i++)
        shrink_make_input(m, body->in[i], names);
    for (size_t i = 0; i < body->n_consts; i++) {
        Value *v = body->consts[i];
        v->name = unique_name(names, v->name);
        v->graph = outer;
        ARENA_PUSH(m->arena, outer->consts, outer->n_consts, outer->cap_consts, v);
    }
    FOR_NODES(n, body)
    adopt(at, n, names);
    size_t skip = body->n_out > at->n_out ? body->n_out - at->n_out : 0;
    for (size_t i = 0; i < at->n_out && skip + i < body->n_out; i++)
        if (at->out[i])
            to[at->out[i]->id] = body->out[skip + i];
    node_remove(at);
}

typedef struct Flatten {
    Module *m;
    Places *places;
    Value **to;
    UniqueNames *names;
} Flatten;

static void flatten_graph(Graph *g, void *ctx) {
    Flatten *f = ctx;
    FOR_NODES(n, g) {
        Graph *body = NULL; /* of one choice: the bodies of a node share nothing */
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; n->attrs[i].kind == ATTR_GRAPH && k < n->attrs[i].n; k++)
                if (place_take(f->places) && !body)
                    body = n->attrs[i].v.g[k];
        if (body)
            flatten_node(f->m, n, body, f->to, f->names);
    }
}

void shrink_flatten(Module *m, Places *places) {
    uint32_t *before = shrink_uses(m);
    Flatten f = {m, places, NEW_ARRAY(m->arena, Value *, (size_t)m->n_values + 1),
                 unique_names_new(m)};
    /* The main graph alone: what was inside is met when this is asked again. */
    flatten_graph(m->graph, &f);
    shrink_redirect(m, f.to);
    shrink_sweep(m, before, false);
}

/* ---- outputs, functions, the unused ---- */

void shrink_outputs(Module *m, Places *places) {
    uint32_t *before = shrink_uses(m);
    Graph *g = m->graph;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_out; i++)
        if (!place_take(places))
            g->out[kept++] = g->out[i];
    g->n_out = kept;
    shrink_sweep(m, before, false);
}

void shrink_inline(Module *m, Places *places) {
    PassContext pass = {.d = m->diags};
    if (m->n_functions && place_take(places))
        pass_inline_functions(m, &pass);
}

void shrink_functions(Module *m, Places *places) {
    size_t kept = 0;
    for (size_t i = 0; i < m->n_functions; i++)
        if (!place_take(places))
            m->functions[kept++] = m->functions[i];
    m->n_functions = kept;
}

typedef struct Unused {
    Places *places;
    const uint32_t *uses;
} Unused;

static size_t drop_unused(const Unused *u, Value **list, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (u->uses[list[i]->id] || !place_take(u->places))
            list[kept++] = list[i];
    return kept;
}

static void unused_in_graph(Graph *g, void *ctx) {
    const Unused *u = ctx;
    g->n_consts = drop_unused(u, g->consts, g->n_consts);
    FOR_NODES(n, g) {
        size_t used = 0;
        for (size_t i = 0; i < n->n_out; i++)
            used += n->out[i] && u->uses[n->out[i]->id];
        if (!used && place_take(u->places)) {
            node_remove(n);
            continue;
        }
        for (size_t i = 0; used && i < n->n_out; i++)
            if (n->out[i] && !u->uses[n->out[i]->id] && place_take(u->places))
                n->out[i] = NULL;
        while (n->n_out > 1 && !n->out[n->n_out - 1])
            n->n_out--;
    }
}

void shrink_unused(Module *m, Places *places) {
    Unused u = {places, shrink_uses(m)};
    m->graph->n_in = drop_unused(&u, m->graph->in, m->graph->n_in);
    module_each_graph(m, unused_in_graph, &u);
    size_t kept = 0;
    for (size_t i = 0; i < m->n_imports; i++)
        if (!place_take(places))
            m->imports[kept++] = m->imports[i];
    m->n_imports = kept;
}
