/* Structural laws: a value is defined once and before its use, links agree, names are unique. */
#include "ir/ops/op.h"

#include <assert.h>

typedef struct Structure {
    Diags *d;
    Arena *scratch;
    bool ok;
    bool *defined; /* by Value.id: defined at this point of the walk */
    uint32_t n_values;
} Structure;

static Loc loc_or(Loc a, Loc b) {
    return a.source || a.what ? a : b;
}

/* Enters a definition; reports a name that this graph already defines. */
static void define(Structure *s, Map *names, Value *v, Loc near) {
    if (v->id >= s->n_values || s->defined[v->id]) {
        s->ok = diag_error(s->d, loc_or(v->loc, near), "value '%s' is defined twice",
                           diag_name(s->d, v->name));
        return;
    }
    s->defined[v->id] = true;
    if (v->name.n == 0) {
        s->ok = diag_error(s->d, loc_or(v->loc, near), "a value needs a name");
        return;
    }
    const Value *first = map_get(names, v->name);
    if (first && v->misread)
        return;
    if (first) {
        s->ok = diag_error(s->d, loc_or(v->loc, near), "value '%s' is defined twice in this graph",
                           diag_name(s->d, v->name));
        diag_note(s->d, first->loc, "first defined here");
        return;
    }
    map_set(names, v->name, v);
}

static void check_use(Structure *s, const Node *n, const Value *v) {
    if (v && (v->id >= s->n_values || !s->defined[v->id]))
        s->ok = diag_error(s->d, n->loc, "%s uses '%s' before or outside its definition",
                           diag_name(s->d, n->op), diag_name(s->d, v->name));
}

static void walk(Structure *s, Graph *g);

static void walk_node(Structure *s, Map *names, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        check_use(s, n, n->in[i]);
    for (size_t i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        for (size_t k = 0; k < attr_graphs(a); k++) {
            assert(a->v.g[k]->owner == n);
            walk(s, a->v.g[k]);
        }
    }
    for (size_t i = 0; i < n->n_out; i++) {
        Value *v = n->out[i];
        if (!v)
            continue;
        assert(v->kind == VALUE_NODE && v->def == n && v->index == (int)i && v->graph == n->graph);
        define(s, names, v, n->loc);
    }
}

/* Values of a body are not visible after it. */
static void leave(Structure *s, const Map *names) {
    for (size_t i = 0; i < map_size(names); i++)
        s->defined[((const Value *)map_value(names, i))->id] = false;
}

static void walk(Structure *s, Graph *g) {
    Map *names = map_new(s->scratch);
    for (size_t i = 0; i < g->n_in; i++)
        define(s, names, g->in[i], g->loc);
    for (size_t i = 0; i < g->n_consts; i++)
        define(s, names, g->consts[i], g->loc);
    FOR_NODES(n, g)
    walk_node(s, names, n);
    for (size_t i = 0; i < g->n_out; i++)
        if (g->out[i]->id >= s->n_values || !s->defined[g->out[i]->id])
            s->ok = diag_error(s->d, loc_or(g->out[i]->loc, g->loc),
                               "graph output '%s' is not defined in the graph",
                               diag_name(s->d, g->out[i]->name));
    leave(s, names);
}

static void walk_function(Structure *s, const Function *f) {
    for (size_t i = 0; i < f->n_defaults; i++)
        for (size_t k = 0; k < attr_graphs(&f->defaults[i]); k++)
            walk(s, f->defaults[i].v.g[k]);
    walk(s, f->body);
}

bool verify_structure(Module *m, Diags *d) {
    Structure s = {.d = d, .scratch = arena_scratch(m->arena), .ok = true, .n_values = m->n_values};
    s.defined = NEW_ARRAY(s.scratch, bool, (size_t)m->n_values + 1);
    walk(&s, m->graph);
    for (size_t i = 0; i < m->n_functions; i++)
        walk_function(&s, m->functions[i]);
    arena_free(s.scratch);
    return s.ok;
}
