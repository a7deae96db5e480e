#include "passes/edit.h"

#include "ir/onnx_fields.h"
#include "ir/extra.h"
#include "passes/annotations.h"
#include "support/parallel.h"

#include <math.h>

const Tensor *edit_float_const(const Value *v) {
    if (!v || !value_is_const(v) || v->data->elem != ELEM_FLOAT || type_is_quantized(v->type))
        return NULL;
    return v->data;
}

bool edit_keeps_rank(const Tensor *t, Type x) {
    return t->rank == 0 || (x.kind == TYPE_TENSOR && t->rank <= x.rank);
}

bool edit_bias_fits(const Tensor *bias, size_t channels) {
    for (int i = 0; i + 1 < bias->rank; i++)
        if (bias->dims[i] != 1)
            return false;
    return bias->count == 1 || bias->count == channels;
}

static bool widen(float x, float *min, float *max) {
    *min = fminf(*min, x);
    *max = fmaxf(*max, x);
    return isfinite(x);
}

typedef struct Finite {
    const RowFloat *x;
    bool no[PARALLEL_MOST]; /* by worker: has seen another number */
} Finite;

static void look_if_finite(void *ctx, size_t from, size_t to, int worker) {
    Finite *f = ctx;
    f->no[worker] = f->no[worker] || !row_is_finite(f->x + from, to - from);
}

bool edit_is_finite(const Value *v) {
    const Tensor *t = edit_float_const(v);
    if (!t)
        return false;
    Finite f = {.x = tensor_floats(t)};
    parallel_for(t->count, PARALLEL_PART, look_if_finite, &f);
    return !memchr(f.no, true, sizeof f.no);
}

bool edit_range(const Value *v, float *min, float *max) {
    const Tensor *t = edit_float_const(v);
    bool finite = true;
    *min = *max = 0;
    if (t) {
        row_range(tensor_floats(t), t->count, min, max);
        return edit_is_finite(v);
    }
    if (!v->stat || !v->stat->min || !v->stat->max)
        return false;
    for (size_t i = 0; i < v->stat->n; i++) {
        finite = widen(v->stat->min[i], min, max) && finite;
        finite = widen(v->stat->max[i], min, max) && finite;
        finite = finite && v->stat->min[i] <= v->stat->max[i];
    }
    return finite;
}

bool edit_all_finite(const double *v, size_t n) {
    size_t i = 0;
    while (i < n && isfinite((float)v[i]))
        i++;
    return i == n;
}

const Quant *edit_tilde(const Value *v) {
    return v && v->type.tilde && type_real_elem(v->type) == ELEM_FLOAT ? v->type.quant : NULL;
}

bool edit_is_decided(const Value *v) {
    return v && v->type.quant && v->type.quant->kind != QUANT_UNKNOWN;
}

void edit_hand_on_open(const Value *gone, Value *result) {
    if (gone->type.tilde && !result->type.quant)
        result->type = type_tilde(result->type, gone->type.quant);
}

Value *edit_new_floats(Graph *g, UniqueNames *names, Str base, int rank, const int64_t *dims,
                       float **data) {
    Arena *a = g->module->arena;
    uint8_t *bytes;
    Tensor *t = tensor_new(a, ELEM_FLOAT, rank, dims, &bytes);
    *data = (float *)(void *)bytes;
    return graph_add_const(g, unique_name(names, base), type_fixed(a, ELEM_FLOAT, rank, dims), t);
}

static void note_param(Value *v, void *named) {
    map_set(named, value_key(v), v);
}

Map *edit_annotated(Module *m) {
    Map *named = map_new(m->scratch);
    annotation_each_param(m, note_param, named);
    return named;
}

typedef struct Sweep {
    const Uses *uses;
    const Map *spare;
} Sweep;

double *edit_bias(const Node *n, size_t channels) {
    size_t at = (size_t)n->def->quant.mac.bias;
    double *b = NEW_ARRAY(n->graph->module->arena, double, channels);
    if (at >= n->n_in || !n->in[at])
        return b;
    const Tensor *t = edit_float_const(n->in[at]);
    if (!t || !edit_bias_fits(t, channels))
        return NULL;
    for (size_t c = 0; c < channels; c++)
        b[c] = tensor_float(t, t->count == 1 ? 0 : c);
    return b;
}

void edit_set_bias(Node *n, UniqueNames *names, const double *b, size_t channels, const char *pass,
                   const Node *other) {
    size_t at = (size_t)n->def->quant.mac.bias;
    Value *old = node_input(n, at);
    Arena *a = n->graph->module->arena;
    Str base = old ? old->name : arena_strf(a, STR_FMT ".bias", STR_ARG(n->out[0]->name));
    int64_t dims[] = {(int64_t)channels};
    float *out;
    Value *v = edit_new_floats(n->graph, names, base, 1, dims, &out);
    for (size_t c = 0; c < channels; c++)
        out[c] = (float)b[c];
    if (old)
        value_from(v, old, pass);
    value_from_node(v, other, pass);
    while (n->n_in <= at)
        node_add_input(n, NULL);
    n->in[at] = v;
}

static Value **place_of(const Value *constant) {
    const Graph *g = constant->graph;
    size_t i = 0;
    while (i < g->n_consts && g->consts[i] != constant)
        i++;
    return i < g->n_consts ? &g->consts[i] : NULL;
}

void edit_take_name(Value *old, Value *now) {
    Str name = now->name;
    now->name = old->name;
    old->name = name;
    now->declared = old->declared;
    now->doc = old->doc;
    now->meta = old->meta;
}

void edit_pass_on(Node *n, const char *pass, Diags *d) {
    node_becomes(n, pass);
    n->domain = STR_NONE;
    n->op = STR("Identity");
    n->n_in = 1;
    n->n_attrs = 0;
    op_resolve(n, d);
}

void edit_take_over(const Uses *uses, Value *old, Value *now) {
    const Use *use;
    Value **from = place_of(old), **to = place_of(now);
    if (uses_of(uses, old, &use) != 1 || !from || !to || old->graph != now->graph)
        return;
    Str name = old->name;
    old->name = now->name;
    now->name = name;
    *from = now;
    *to = old;
}

static void sweep_graph(Graph *g, void *ctx) {
    const Sweep *s = ctx;
    size_t kept = 0;
    for (size_t i = 0; i < g->n_consts; i++) {
        const Use *use;
        Value *v = g->consts[i];
        if (uses_of(s->uses, v, &use) || map_get(s->spare, value_key(v)))
            g->consts[kept++] = v;
    }
    g->n_consts = kept;
}

void edit_sweep_but(Module *m, const Map *spare) {
    Arena *outer = scratch_begin(m);
    Sweep s = {uses_new(m), spare};
    module_each_graph(m, sweep_graph, &s);
    scratch_end(m, outer);
}

void edit_sweep(Module *m) {
    Arena *outer = scratch_begin(m);
    edit_sweep_but(m, edit_annotated(m));
    scratch_end(m, outer);
}

typedef struct Dead {
    bool *may_go;    /* by node id */
    size_t *readers; /* by value id */
    bool again; /* a body went, whose readings are not in `readers`, or who read another graph */
} Dead;

static bool is_dead(const Dead *d, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && d->readers[n->out[i]->id])
            return false;
    return d->may_go[n->id];
}

static void count_readers(Value *v, void *ctx) {
    const Uses *uses = ((void **)ctx)[0];
    const Use *use;
    ((size_t *)((void **)ctx)[1])[v->id] = uses_of(uses, v, &use);
}

static void drop_dead_nodes(Graph *g, void *ctx) {
    Dead *d = ctx;
    for (Node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (!is_dead(d, n))
            continue;
        for (size_t i = 0; i < n->n_in; i++) {
            if (!n->in[i])
                continue;
            d->readers[n->in[i]->id]--;
            d->again |= n->in[i]->graph != g;
        }
        d->again |= has_bodies(n);
        node_remove(n);
    }
}

static void drop_dead(Module *m, bool *may_go) {
    Dead d = {may_go, NEW_ARRAY(m->scratch, size_t, m->n_values + 1), true};
    while (d.again) {
        d.again = false;
        module_each_value(m, count_readers, (void *[]){uses_new(m), d.readers});
        module_each_graph(m, drop_dead_nodes, &d);
    }
}

void edit_drop_dead(Module *m, uint32_t first) {
    bool *may_go = NEW_ARRAY(m->scratch, bool, m->n_nodes + 1);
    for (uint32_t i = first; i < m->n_nodes; i++)
        may_go[i] = true;
    drop_dead(m, may_go);
}

void edit_drop_unread(Module *m, Node *const *nodes, size_t n) {
    bool *may_go = NEW_ARRAY(m->scratch, bool, m->n_nodes + 1);
    for (size_t i = 0; i < n; i++)
        may_go[nodes[i]->id] = true;
    if (n)
        drop_dead(m, may_go);
}

typedef struct Domain {
    Str name;
    bool used;
} Domain;

static void look_for_domain(Graph *g, void *ctx) {
    Domain *d = ctx;
    FOR_NODES(n, g)
    d->used =
        d->used || str_eq(n->domain, d->name) || (n->call && str_eq(n->call->domain, d->name));
}

void edit_forget_import(Module *m, Str domain) {
    Domain d = {domain, false};
    size_t kept = 0;
    module_each_graph(m, look_for_domain, &d);
    for (size_t i = 0; i < m->n_imports; i++)
        if (d.used || !str_eq(m->imports[i].domain, domain))
            m->imports[kept++] = m->imports[i];
    m->n_imports = kept;
}

static bool is_output(const WireField *f, bool place, void *ctx) {
    (void)ctx;
    return place && f->number == PLACE_OUTPUT;
}

void edit_forget_outputs(Graph *g) {
    g->extra = extra_without(g->module->arena, g->extra, is_output, NULL);
}

AxisWalk edit_axis(int rank, const int64_t *dims, int axis) {
    AxisWalk w = {1, (size_t)dims[axis], dims_step(rank, dims, axis)};
    for (int i = 0; i < axis; i++)
        w.outer *= (size_t)dims[i];
    return w;
}
