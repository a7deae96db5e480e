/* Puts the nodes of the branch that runs in the place of an If whose condition is constant (a size
 * that -shape has fixed, a mode that -set has), so that they are folded, fused and quantized with
 * those around them. The other branch goes, and what only that one read.
 *
 * What the branch makes as a result of the If takes the result's name; all else keeps its own,
 * unless that stands elsewhere in the model, too: sibling branches may use one name each. */
#include "passes/edit.h"

static const char PASS_NAME[] = "inline-branches";

typedef struct Names {
    Map *first; /* name -> the first value of that name */
    Map *again; /* name -> another one */
} Names;

typedef struct Inline {
    Module *m;
    Names names;
    UniqueNames *unique;
    Value **now; /* by value id: what stands for it, NULL for itself */
    bool any;
} Inline;

static void note_name(Value *v, void *ctx) {
    const Names *names = ctx;
    Map *to = map_get(names->first, v->name) ? names->again : names->first;
    map_set(to, v->name, v);
}

/* ---- one If ---- */

static void rename_value(Inline *in, Value *v) {
    if (map_get(in->names.again, v->name))
        v->name = unique_name(in->unique, v->name);
}

/* The node of the branch that makes `from` makes `to` instead. */
static void claim(Inline *in, Value *from, Value *to) {
    node_take_result(from->def, (size_t)from->index, to);
    to->stat = to->stat ? to->stat : from->stat;
    in->now[from->id] = to;
}

/* An operand of something around, a constant, or a result that the If yields twice. */
static void copy(Graph *branch, const Node *n, Value *from, Value *to) {
    Node *id = node_new(branch, STR_NONE, STR("Identity"), 1, 1);
    node_from(id, n, PASS_NAME);
    id->loc = n->loc;
    id->in[0] = from;
    graph_append(branch, id);
    node_take_result(id, 0, to);
}

static void make_results(Inline *in, Graph *branch, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++) {
        Value *from = branch->out[i], *to = n->out[i];
        if (!to)
            continue;
        if (from->kind == VALUE_NODE && from->graph == branch && !in->now[from->id])
            claim(in, from, to);
        else
            copy(branch, n, from, to);
    }
}

static void move_nodes(Inline *in, Graph *branch, Node *n) {
    Graph *g = n->graph;
    for (size_t i = 0; i < branch->n_consts; i++) {
        Value *v = branch->consts[i];
        rename_value(in, v);
        v->graph = g;
        ARENA_PUSH(in->m->arena, g->consts, g->n_consts, g->cap_consts, v);
    }
    FOR_NODES(moved, branch) {
        for (size_t i = 0; i < moved->n_out; i++)
            if (moved->out[i] && moved->out[i]->graph == branch)
                rename_value(in, moved->out[i]);
        node_remove(moved);
        node_insert_before(n, moved);
    }
}

/* What stands where the If did: the next node to look at. */
static Node *inline_branch(Inline *in, Node *n, Graph *branch) {
    Node *before = n->prev, *next;
    Graph *g = n->graph;
    make_results(in, branch, n);
    move_nodes(in, branch, n);
    next = before ? before->next : g->first;
    next = next == n ? n->next : next;
    node_remove(n);
    in->any = true;
    return next;
}

/* ---- the module ---- */

static void inline_graph(Inline *in, Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        Graph *branch = node_branch(n);
        next = branch ? inline_branch(in, n, branch) : n->next;
        for (size_t i = 0; !branch && i < n->n_attrs; i++)
            for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
                inline_graph(in, n->attrs[i].v.g[k]);
    }
}

static Value *value_now(const Inline *in, Value *v) {
    while (v && in->now[v->id])
        v = in->now[v->id];
    return v;
}

static void read_now(Graph *g, void *ctx) {
    const Inline *in = ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = value_now(in, n->in[i]);
    for (size_t i = 0; i < g->n_out; i++)
        g->out[i] = value_now(in, g->out[i]);
}

bool pass_inline_branches(Module *m, PassContext *c) {
    (void)c;
    Inline in = {.m = m,
                 .names = {map_new(m->scratch), map_new(m->scratch)},
                 .unique = unique_names_new(m),
                 .now = NEW_ARRAY(m->arena, Value *, m->n_values + 1)};
    module_each_value(m, note_name, &in.names);
    inline_graph(&in, m->graph);
    if (!in.any)
        return true;
    module_each_graph(m, read_now, &in);
    edit_drop_dead(m, 0);
    edit_sweep(m);
    module_forget_infos(m);
    return true;
}
