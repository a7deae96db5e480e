/* See exec/fixed_shapes.h. */
#include "exec/fixed_shapes.h"
#include "exec/calibrate.h"
#include "exec/fold.h"
#include "exec/specialise.h"
#include "ir/ops/op.h"

#include <math.h>

/* A value as it was. */
typedef struct Was {
    Type type;
    Node *def; /* of a value that a node computed */
    Provenance from;
    Stat *stat;
    bool declared;
} Was;

struct FixedShapes {
    Value **in; /* graph inputs */
    size_t n_in;
    Was *was; /* by value id */
    uint32_t n_values;
    Node **nodes; /* in order, graph by graph */
    size_t n_nodes, cap_nodes;
};

static void save_value(Value *v, void *ctx) {
    FixedShapes *s = ctx;
    s->was[v->id] =
        (Was){v->type, v->kind == VALUE_NODE ? v->def : NULL, v->from, v->stat, v->declared};
}

static void save_nodes(Graph *g, void *ctx) {
    FixedShapes *s = ctx;
    FOR_NODES(n, g) ARENA_PUSH(g->module->arena, s->nodes, s->n_nodes, s->cap_nodes, n);
}

/* ---- back ---- */

static bool is_linked(const Node *n) {
    return n->prev || n->graph->first == n;
}

/* Nodes that were folded go behind the one that was before them. */
static void restore_nodes(const FixedShapes *s) {
    for (size_t i = 0; i < s->n_nodes; i++) {
        Node *n = s->nodes[i], *before = i ? s->nodes[i - 1] : NULL;
        if (is_linked(n))
            continue;
        if (before && before->graph == n->graph)
            node_insert_after(before, n);
        else if (n->graph->first)
            node_insert_before(n->graph->first, n);
        else
            graph_append(n->graph, n);
    }
}

static Stat *stat_of(Arena *a, const Tensor *t) {
    double sum = 0, squares = 0;
    double min = t->count ? tensor_float(t, 0) : NAN, max = min;
    for (size_t i = 0; i < t->count; i++) {
        double x = tensor_float(t, i);
        min = fmin(min, x);
        max = fmax(max, x);
        sum += x;
        squares += x * x;
    }
    double mean = sum / (double)t->count;
    double variance = squares / (double)t->count - mean * mean;
    return isnan(min) ? NULL : calib_stat(a, min, max, mean, sqrt(fmax(variance, 0)), 0);
}

/* Whether folding made a constant of it. */
static bool was_folded(const FixedShapes *s, const Value *v) {
    return v->id < s->n_values && s->was[v->id].def && v->kind == VALUE_CONST;
}

static bool was_input(const FixedShapes *s, const Value *v) {
    for (size_t i = 0; i < s->n_in; i++)
        if (s->in[i] == v)
            return true;
    return false;
}

/* Inputs that the data settled. */
static void restore_inputs(const FixedShapes *s, Graph *g) {
    for (size_t i = 0; i < s->n_in; i++) {
        Value *v = g->in[i] = s->in[i];
        if (v->kind == VALUE_INPUT)
            continue;
        v->kind = VALUE_INPUT;
        v->data = NULL;
        v->declared = s->was[v->id].declared;
    }
    g->n_in = s->n_in;
}

static void restore_value(const FixedShapes *s, Value *v) {
    const Was *was = &s->was[v->id];
    if (type_real_elem(v->type) == ELEM_FLOAT)
        v->stat = stat_of(v->graph->module->arena, v->data);
    v->kind = VALUE_NODE;
    v->data = NULL;
    v->def = was->def;
    v->from = was->from;
    v->declared = was->declared;
    v->type = was->type;
}

static void restore_consts(Graph *g, void *ctx) {
    const FixedShapes *s = ctx;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_consts; i++) {
        Value *v = g->consts[i];
        if (was_folded(s, v))
            restore_value(s, v);
        else if (g != g->module->graph || !was_input(s, v))
            g->consts[kept++] = v;
    }
    g->n_consts = kept;
}

static void restore_type(Value *v, void *ctx) {
    const FixedShapes *s = ctx;
    if (v->id < s->n_values && v->kind != VALUE_CONST)
        v->type = s->was[v->id].type;
}

void shapes_restore(Module *m, FixedShapes *s) {
    restore_nodes(s);
    module_each_graph(m, restore_consts, s);
    restore_inputs(s, m->graph);
    module_each_value(m, restore_type, s);
}

static void restore_stat(Value *v, void *ctx) {
    const FixedShapes *s = ctx;
    if (v->id < s->n_values)
        v->stat = s->was[v->id].stat;
}

void shapes_undo(Module *m, FixedShapes *s) {
    shapes_restore(m, s);
    module_each_value(m, restore_stat, s);
}

FixedShapes *shapes_save(Module *m) {
    FixedShapes *s = NEW(m->arena, FixedShapes);
    *s = (FixedShapes){.was = NEW_ARRAY(m->arena, Was, m->n_values), .n_values = m->n_values};
    module_each_value(m, save_value, s);
    module_each_graph(m, save_nodes, s);
    s->n_in = m->graph->n_in;
    s->in = arena_copy(m->arena, m->graph->in, s->n_in * sizeof *s->in);
    return s;
}

FixedShapes *shapes_fix(Module *m, const DataPaths *data, Diags *d) {
    FixedShapes *s = shapes_save(m);
    bool open = false;
    for (size_t i = 0; i < m->graph->n_in; i++)
        open = open || !type_is_static(m->graph->in[i]->type);
    if (samples_settle(m, data->paths, data->n, d) && samples_bind(m, data, NULL, d)) {
        if (open || m->graph->n_in < s->n_in)
            module_fold(m, NULL);
        return s;
    }
    shapes_restore(m, s);
    return NULL;
}
