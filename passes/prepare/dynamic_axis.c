/* Makes fixed dimensions of graph inputs symbolic (-dynamic-axis=INPUT:AXIS:NAME), and names those
 * of outputs (OUTPUT:AXIS:NAME).
 *
 * What depends on such a dimension is found by trying: the inputs get another size, and all shapes
 * are inferred again. A Reshape to constants that hold the old size is rewritten, to 0 or -1, where
 * the dimension is still to be seen in both shapes; whatever else does not fit the other size is an
 * error at its node. Then the size becomes a symbol. */
#include <stdlib.h>

#include "ir/ops/qop.h"
#include "passes/edit.h"
#include "passes/prepare/grow_shape.h"

static const char PASS_NAME[] = "dynamic-axis";

typedef struct Axis {
    const char *text; /* as on the command line */
    Value *v;
    int axis;
    Str symbol;
    int64_t old, trial; /* sizes; old -1: it was none */
} Axis;

typedef struct Dynamic {
    PassContext *c;
    Module *m;
    Axis *axes;
    size_t n;
    Sizes sizes;     /* of the axes, as Reshape asks for them */
    size_t n_values; /* that existed at the start */
    Type *before;    /* by value id */
    bool *declared;  /* by value id */
    UniqueNames *names;
    bool ok;
} Dynamic;

/* ---- the command line ---- */

static bool misuse(Dynamic *d, const Axis *a, const char *why) {
    d->c->misused = true;
    return diag_error(d->c->d, LOC_NONE, "-dynamic-axis=%s: %s", a->text, why);
}

/* The `i`-th name of a list a,b,c; STR_NONE behind its end. */
static Str listed(const char *list, size_t i) {
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (i-- == 0)
            return (Str){at, strcspn(at, ",")};
    return STR_NONE;
}

static Value *find_in(Value **v, size_t n, const char *renamed, Str name) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) /* the name that it is to get */
        if (!v[i]->data && str_eq(listed(renamed, k++), name))
            return v[i];
    for (size_t i = 0; i < n; i++)
        if (!v[i]->data && str_eq(v[i]->name, name))
            return v[i];
    return NULL;
}

static bool find_value(Dynamic *d, Axis *a, Str name) {
    Graph *g = d->m->graph;
    a->v = find_in(g->in, g->n_in, d->c->input_names, name);
    a->v = a->v ? a->v : find_in(g->out, g->n_out, d->c->output_names, name);
    if (a->v)
        return true;
    const char **names = NEW_ARRAY(d->m->arena, const char *, g->n_in + g->n_out + 1);
    size_t n = 0;
    for (size_t i = 0; i < g->n_in; i++)
        names[n++] = arena_str(d->m->arena, g->in[i]->name).s;
    for (size_t i = 0; i < g->n_out; i++)
        names[n++] = arena_str(d->m->arena, g->out[i]->name).s;
    misuse(d, a, "no input and no output of the graph has that name");
    diag_did_you_mean(d->c->d, LOC_NONE, name, names, n);
    return false;
}

/* INPUT:AXIS:NAME; the name of an input may hold colons. */
static bool parse(Dynamic *d, Axis *a) {
    const char *last = strrchr(a->text, ':'), *mid = last;
    while (mid && mid > a->text && *--mid != ':')
        ;
    if (!last || mid == a->text || *mid != ':' || !last[1])
        return misuse(d, a, "expected INPUT:AXIS:NAME, as in image:0:batch");
    char *end;
    long axis = strtol(mid + 1, &end, 10);
    if (end != last || end == mid + 1)
        return misuse(d, a, "the axis is no number");
    if (!find_value(d, a, (Str){a->text, (size_t)(mid - a->text)}))
        return false;
    int rank = value_rank(a->v);
    if (rank < 0 || axis >= rank || axis < -rank)
        return misuse(d, a,
                      arena_strf(d->m->arena, "'%s' is %s, which has no such axis",
                                 diag_name(d->c->d, a->v->name), type_text(d->m->arena, a->v->type))
                          .s);
    a->axis = (int)(axis < 0 ? axis + rank : axis);
    a->symbol = str_from(last + 1);
    a->old = a->v->type.dims[a->axis].value;
    return true;
}

/* One symbol is one size. */
static bool check_symbols(Dynamic *d) {
    for (size_t i = 0; i < d->n; i++) {
        if (d->axes[i].old > INT32_MAX)
            return misuse(d, &d->axes[i], "its size is over 2^31");
        d->axes[i].trial = 2 * d->axes[i].old + 1 + 2 * (int64_t)i;
        for (size_t k = 0; k < i; k++) {
            if (!str_eq(d->axes[k].symbol, d->axes[i].symbol) ||
                d->axes[k].v->kind != VALUE_INPUT || d->axes[i].v->kind != VALUE_INPUT)
                continue;
            if (d->axes[k].old != d->axes[i].old && d->axes[k].old >= 0 && d->axes[i].old >= 0)
                return misuse(d, &d->axes[i], "another axis of that name has another size");
            d->axes[i].trial = d->axes[k].trial;
            break;
        }
    }
    return true;
}

static void list_sizes(Dynamic *d) {
    int64_t *old = NEW_ARRAY(d->m->arena, int64_t, d->n + 1);
    int64_t *trial = NEW_ARRAY(d->m->arena, int64_t, d->n + 1);
    for (size_t i = 0; i < d->n; i++) {
        old[i] = d->axes[i].old;
        trial[i] = d->axes[i].trial;
    }
    d->sizes = (Sizes){old, trial, d->n};
}

/* ---- types ---- */

static void save(Value *v, void *ctx) {
    Dynamic *d = ctx;
    d->before[v->id] = v->type;
    d->declared[v->id] = v->declared;
}

static void restore_declared(Value *v, void *ctx) {
    const Dynamic *d = ctx;
    if (v->id < d->n_values)
        v->declared = d->declared[v->id];
}

/* Shapes of results are to be inferred anew; those that ONNX stated, too. */
static void forget_graph(Graph *g, void *ctx) {
    (void)ctx;
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->type.kind == TYPE_TENSOR) {
            n->out[i]->type.rank = -1;
            n->out[i]->type.dims = NULL;
            n->out[i]->declared = false;
        }
}

static void set_dim(Dynamic *d, Value *v, int axis, Dim dim) {
    Dim *dims = arena_copy(d->m->arena, v->type.dims, (size_t)v->type.rank * sizeof *dims);
    dim.denotation = dims[axis].denotation;
    dims[axis] = dim;
    v->type.dims = dims;
}

static void set_inputs(Dynamic *d, bool symbols) {
    for (size_t i = 0; i < d->n; i++) {
        const Axis *a = &d->axes[i];
        if (a->v->kind != VALUE_INPUT || (a->old < 0 && !symbols))
            continue;
        set_dim(d, a->v, a->axis, symbols ? (Dim){-1, a->symbol, STR_NONE} : dim_of(a->trial));
    }
    module_each_graph(d->m, forget_graph, NULL);
}

/* ---- Reshape ---- */

static bool fixes(Dynamic *d, const Node *n) {
    return diag_error(d->c->d, n->loc,
                      "%s: its shape fixes a dimension that -dynamic-axis makes symbolic: "
                      "neither 0 nor -1 can take its place for sure",
                      node_text(n));
}

/* At the trial's sizes: a constant shape that yields something else than the old one grown. */
static void adapt_reshape(Dynamic *d, Node *n) {
    const Tensor *t = n->n_in > 1 ? value_data(n->in[1]) : NULL;
    if (!t || !t->data || t->count > MAX_RANK || !n->out[0])
        return;
    Type x0 = d->before[n->in[0]->id], y0 = d->before[n->out[0]->id];
    int64_t shape[MAX_RANK], old[MAX_RANK], rank = (int64_t)t->count;
    if (y0.kind != TYPE_TENSOR || y0.rank != rank)
        return;
    for (size_t i = 0; i < t->count; i++)
        shape[i] = old[i] = tensor_int(t, i);
    ShapeGrowth g =
        grow_shape(&d->sizes, x0, n->in[0]->type, y0, node_int(n, "allowzero", 0), shape);
    if (g == GROWS_UNSURE)
        d->ok = fixes(d, n);
    if (g != GROWS || memcmp(shape, old, t->count * sizeof *shape) == 0)
        return;
    Value *v = graph_add_const(
        d->m->graph,
        unique_name(d->names, arena_strf(d->m->arena, STR_FMT "_any", STR_ARG(n->in[1]->name))),
        type_fixed(d->m->arena, ELEM_INT64, 1, &rank),
        tensor_of(d->m->arena, ELEM_INT64, 1, &rank,
                  arena_copy(d->m->arena, shape, (size_t)rank * sizeof *shape)));
    value_from(v, n->in[1], PASS_NAME);
    v->loc = n->in[1]->loc;
    n->in[1] = v;
}

/* ---- the trial ---- */

static void warn_unknown(Dynamic *d, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (v && !n->def && !qop_find(n->domain, n->op) && v->type.kind == TYPE_TENSOR &&
            v->kind != VALUE_CONST && !type_same_shape(v->type, d->before[v->id])) {
            diag_warning(d->c->d, n->loc,
                         "%s: qxc does not know this operator, nor whether it takes another size",
                         node_text(n));
            return;
        }
    }
}

static void try_graph(Dynamic *d, Graph *g) {
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_attrs; i++)
            for (size_t k = 0; n->attrs[i].kind == ATTR_GRAPH && k < n->attrs[i].n; k++)
                try_graph(d, n->attrs[i].v.g[k]);
        if (n->n_in && n->in[0] && node_is(n, "Reshape"))
            adapt_reshape(d, n);
        d->ok = d->ok && node_infer(n, d->c->d);
        if (!d->ok)
            return;
        warn_unknown(d, n);
    }
}

static bool try_sizes(Dynamic *d) {
    set_inputs(d, false);
    try_graph(d, d->m->graph);
    for (size_t i = 0; i < d->n && !d->ok; i++)
        if (d->axes[i].old >= 0 && d->axes[i].v->kind == VALUE_INPUT)
            diag_note(d->c->d, d->axes[i].v->loc, "-dynamic-axis=%s was tried with %lld",
                      d->axes[i].text, (long long)d->axes[i].trial);
    return d->ok;
}

/* ---- symbols ---- */

/* A dimension that has a symbol already gets the new one in every type. */
typedef struct Symbols {
    Arena *arena;
    Str from, to;
} Symbols;

static void replace_symbol(Value *v, void *ctx) {
    const Symbols *s = ctx;
    Type *t = &v->type;
    for (int i = 0; t->kind == TYPE_TENSOR && i < t->rank; i++)
        if (t->dims[i].value < 0 && t->dims[i].param.s && str_eq(t->dims[i].param, s->from)) {
            t->dims = arena_copy(s->arena, t->dims, (size_t)t->rank * sizeof *t->dims);
            ((Dim *)t->dims)[i].param = s->to;
        }
}

static void rename_symbols(Dynamic *d) {
    for (size_t i = 0; i < d->n; i++) {
        Dim dim = d->axes[i].v->type.dims[d->axes[i].axis];
        Symbols s = {d->m->arena, dim.param, d->axes[i].symbol};
        if (d->axes[i].v->kind == VALUE_INPUT && dim.value < 0 && dim.param.s)
            module_each_value(d->m, replace_symbol, &s);
    }
}

static bool name_output(Dynamic *d, const Axis *a) {
    Dim have = a->v->type.dims[a->axis];
    if (have.value >= 0)
        return diag_error(d->c->d, a->v->loc,
                          "-dynamic-axis=%s: that dimension is %lld whatever the inputs are",
                          a->text, (long long)have.value);
    if (have.param.s && !str_eq(have.param, a->symbol))
        return misuse(d, a,
                      arena_strf(d->m->arena, "that dimension is '%s' already",
                                 diag_name(d->c->d, have.param))
                          .s);
    set_dim(d, a->v, a->axis, (Dim){-1, a->symbol, STR_NONE});
    return true;
}

static bool set_symbols(Dynamic *d) {
    set_inputs(d, true);
    if (!module_infer(d->m, d->c->d))
        return false;
    module_each_value(d->m, restore_declared, d);
    bool ok = true;
    for (size_t i = 0; i < d->n; i++)
        if (d->axes[i].v->kind != VALUE_INPUT)
            ok = name_output(d, &d->axes[i]) && ok;
    edit_forget_outputs(d->m->graph);
    return ok;
}

bool pass_dynamic_axis(Module *m, PassContext *c) {
    Dynamic d = {.c = c,
                 .m = m,
                 .n = c->n_axes,
                 .axes = NEW_ARRAY(m->arena, Axis, c->n_axes + 1),
                 .n_values = m->n_values,
                 .before = NEW_ARRAY(m->arena, Type, m->n_values + 1),
                 .declared = NEW_ARRAY(m->arena, bool, m->n_values + 1),
                 .names = unique_names_new(m),
                 .ok = true};
    for (size_t i = 0; i < d.n; i++) {
        d.axes[i].text = c->axes[i];
        d.ok = parse(&d, &d.axes[i]) && d.ok;
    }
    if (!d.ok || !check_symbols(&d))
        return false;
    list_sizes(&d);
    rename_symbols(&d);
    module_each_value(m, save, &d);
    if (!try_sizes(&d) || !set_symbols(&d))
        return false;
    edit_sweep(m);
    return true;
}
