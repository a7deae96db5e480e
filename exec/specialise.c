/* See exec/specialise.h. */
#include "exec/specialise.h"
#include "exec/fold.h"

#include <assert.h>

#include "ir/ops/op.h"

/* ---- walking all types of a module ---- */

typedef struct Change {
    const DimBind *binds;
    bool *used;
    size_t n;
    bool forget; /* shapes that were computed are dropped, to be inferred again */
    Arena *arena;
} Change;

static void change_type(Change *c, Type *t) {
    if (t->kind != TYPE_TENSOR || t->rank < 1)
        return;
    Dim *dims = arena_copy(c->arena, t->dims, (size_t)t->rank * sizeof *dims);
    for (int i = 0; i < t->rank; i++)
        for (size_t k = 0; k < c->n; k++)
            if (dims[i].value < 0 && dims[i].param.s && str_eq(dims[i].param, c->binds[k].name)) {
                dims[i].value = c->binds[k].value;
                dims[i].param = STR_NONE;
                dims[i].bound = true;
                c->used[k] = true;
                break;
            }
    t->dims = dims;
}

static void change_graph(Graph *g, void *ctx) {
    Change *c = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        change_type(c, &g->in[i]->type);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i])
            continue;
        change_type(c, &n->out[i]->type);
        if (c->forget && n->out[i]->type.kind == TYPE_TENSOR) {
            n->out[i]->type.rank = -1;
            n->out[i]->type.dims = NULL;
        }
    }
}

/* ---- the names there are, for did-you-mean ---- */

typedef struct Names {
    Arena *arena;
    const char **items;
    size_t n, cap;
} Names;

static void collect_names(Graph *g, void *ctx) {
    Names *names = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++)
            if (g->in[i]->type.dims[k].param.s)
                ARENA_PUSH(names->arena, names->items, names->n, names->cap,
                           arena_str(names->arena, g->in[i]->type.dims[k].param).s);
}

static bool unknown_dim(Module *m, Str name, Diags *d) {
    Names names = {.arena = m->arena};
    collect_names(m->graph, &names);
    diag_error(d, LOC_NONE, "no dimension is called '%s'", diag_name(d, name));
    diag_did_you_mean(d, LOC_NONE, name, names.items, names.n);
    return false;
}

static const bool *bind_all(Module *m, const DimBind *binds, size_t n) {
    Change c = {.binds = binds, .n = n, .arena = m->arena, .used = NEW_ARRAY(m->arena, bool, n)};
    for (size_t i = 0; i < n; i++)
        assert(binds[i].value >= 0);
    module_each_graph(m, change_graph, &c);
    return c.used;
}

bool module_bind_dims(Module *m, const DimBind *binds, size_t n, Diags *d) {
    const bool *used = bind_all(m, binds, n);
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        if (!used[i])
            ok = unknown_dim(m, binds[i].name, d);
    return ok && module_refine_early(m, d);
}

bool module_bind_known(Module *m, const DimBind *binds, size_t n, Diags *d) {
    bind_all(m, binds, n);
    return module_refine_early(m, d);
}

/* A name that inputs give to dimensions of two sizes stands for nothing. */
static void add_bind(DimBind *binds, size_t *n, Str name, int64_t value) {
    for (size_t i = 0; i < *n; i++)
        if (str_eq(binds[i].name, name)) {
            binds[i].value = binds[i].value == value ? value : -1;
            return;
        }
    binds[(*n)++] = (DimBind){name, value};
}

bool module_bind_first(Module *m, const int64_t *sizes, Diags *d) {
    DimBind *binds = NEW_ARRAY(m->arena, DimBind, m->graph->n_in + 1);
    size_t n = 0, kept = 0;
    bool changed = false;
    for (size_t i = 0; i < m->graph->n_in; i++) {
        Type *t = &m->graph->in[i]->type;
        if (!type_first_open(*t) || sizes[i] < 0)
            continue;
        if (dim_is_named(t->dims[0]))
            add_bind(binds, &n, t->dims[0].param, sizes[i]);
        Dim *dims = arena_copy(m->arena, t->dims, (size_t)t->rank * sizeof *dims);
        dims[0] = dim_of(sizes[i]);
        t->dims = dims;
        changed = true;
    }
    for (size_t i = 0; i < n; i++)
        if (binds[i].value >= 0)
            binds[kept++] = binds[i];
    return !changed || module_bind_known(m, binds, kept, d);
}

bool module_set_shape(Module *m, Str input, int rank, const int64_t *dims, Diags *d) {
    Graph *g = m->graph;
    const char **names = NEW_ARRAY(m->arena, const char *, g->n_in);
    Value *v = NULL;
    for (size_t i = 0; i < g->n_in; i++) {
        names[i] = arena_str(m->arena, g->in[i]->name).s;
        if (str_eq(g->in[i]->name, input))
            v = g->in[i];
    }
    if (!v) {
        diag_error(d, LOC_NONE, "no graph input is called '%s'", diag_name(d, input));
        diag_did_you_mean(d, LOC_NONE, input, names, g->n_in);
        return false;
    }
    if (v->type.kind != TYPE_TENSOR || (v->type.rank >= 0 && v->type.rank != rank))
        return diag_error(d, v->loc, "graph input %s has %d dimensions, not %d",
                          diag_name(d, input), v->type.rank, rank);
    Type fixed = type_fixed(m->arena, v->type.elem, rank, dims);
    v->type.rank = rank;
    v->type.dims = fixed.dims;
    Change c = {.arena = m->arena, .forget = true};
    module_each_graph(m, change_graph, &c);
    return module_refine_early(m, d);
}

static void look_for_branches(Graph *g, void *ctx) {
    bool *any = ctx;
    FOR_NODES(n, g)
    *any = *any || (n->def && n->def->skips);
}

bool module_check_fixed(Module *m, Diags *d) {
    bool branches = false;
    module_each_graph(m, look_for_branches, &branches);
    if (branches)
        module_fold(m, NULL);
    return module_check(m, VERIFY_ERRORS, d);
}

/* Operators are asked by the binder; this is about values that pass by all of them. */
static bool check_rank(const Value *v, Diags *d) {
    return v->type.rank <= MAX_RANK ||
           diag_error(d, v->loc, "'%s' has %d dimensions; what runs has at most %d",
                      diag_name(d, v->name), v->type.rank, MAX_RANK);
}

const char *specialise_shape_option(Arena *a, const Value *v) {
    Buf b = buf_new(a);
    buf_fmt(&b, "-shape=" STR_FMT "=", STR_ARG(v->name));
    for (int k = 0; k < v->type.rank; k++) {
        Dim dim = v->type.dims[k];
        buf_fmt(&b, "%s", k ? "," : "");
        if (dim.value >= 0)
            buf_fmt(&b, "%lld", (long long)dim.value);
        else
            buf_fmt(&b, "SIZE%d", k);
    }
    if (v->type.rank < 0)
        buf_fmt(&b, "...");
    return buf_as_str(&b).s;
}

static bool is_named(const Value *v, int from) {
    bool all = v->type.rank >= 0;
    for (int k = from; k < v->type.rank; k++)
        all = all && (v->type.dims[k].value >= 0 || dim_is_named(v->type.dims[k]));
    return all;
}

static void add_option(Buf *b, const char *option) {
    buf_text(b, b->n ? " " : "");
    buf_shell(b, str_from(option));
}

/* The options that would fix the shape of a graph input from dimension `from` on, but for names of
 * `seen`. */
static void add_fixing(Buf *b, Map *seen, Arena *a, const Value *v, int from) {
    if (!is_named(v, from)) {
        add_option(b, specialise_shape_option(a, v));
        return;
    }
    for (int k = from; k < v->type.rank; k++) {
        Dim dim = v->type.dims[k];
        if (dim.value >= 0 || map_get(seen, dim.param))
            continue;
        map_set(seen, dim.param, (void *)v);
        add_option(b, arena_strf(a, "-bind=" STR_FMT "=SIZE", STR_ARG(dim.param)).s);
    }
}

Str specialise_options(Arena *a, const Graph *g, bool first_too) {
    Buf b = buf_new(a);
    Map *seen = map_new(a);
    for (size_t i = 0; i < g->n_in; i++)
        if (!g->in[i]->data)
            add_fixing(&b, seen, a, g->in[i], first_too ? 0 : 1);
    return buf_as_str(&b);
}

bool module_check_static(Module *m, Diags *d) {
    bool ok = true;
    for (size_t i = 0; i < m->graph->n_out; i++)
        if (m->graph->out[i]->kind == VALUE_CONST)
            ok = check_rank(m->graph->out[i], d) && ok;
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Value *v = m->graph->in[i];
        ok = check_rank(v, d) && ok;
        if (v->data || type_is_static(v->type))
            continue;
        Buf b = buf_new(m->arena);
        add_fixing(&b, map_new(m->arena), m->arena, v, 0);
        ok = diag_error(d, v->loc, "graph input %s needs a fixed shape here, not %s; use " STR_FMT,
                        diag_name(d, v->name), type_text(m->arena, v->type),
                        STR_ARG(buf_as_str(&b)));
    }
    return ok;
}

bool module_check_runnable(Module *m, Diags *d) {
    return module_check_static(m, d) && module_refine(m, d) && module_verify(m, d) &&
           module_check_use(m, d);
}

bool module_others_known(const Module *m) {
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Value *v = m->graph->in[i];
        for (int k = type_first_open(v->type); k < v->type.rank && !v->data; k++)
            if (v->type.dims[k].value < 0)
                return false;
    }
    return true;
}
