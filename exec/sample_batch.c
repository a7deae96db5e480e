/* What open first dimensions of graph inputs are: a batch, or the model's own. */
#include "exec/sample_files.h"
#include "exec/samples.h"
#include "exec/specialise.h"
#include "ir/ops/op.h"
#include "support/npz.h"

struct BatchPlan {
    const DataPaths *data;
    int64_t *given; /* by graph input: what the data have where its first dimension is open */
    bool *first;    /* by graph input: it is */
    size_t n_first;
    int64_t most;   /* the largest of `given` in any file */
    bool steady;    /* all files have the same */
    bool shared;    /* in each file all inputs have the same */
    bool one;       /* all are 1 */
    bool named;     /* -batch names one, before the data fix what they have */
    int64_t *sizes; /* what the first dimensions become where there is a batch */
    const Batch *batch;
    Batch *mixed; /* why there is none */
};

/* ---- what the data say ---- */

static void add_array(BatchPlan *p, size_t input, int64_t n, int64_t *in_file) {
    p->steady = p->steady && (p->given[input] == BATCH_LEAVE || p->given[input] == n);
    p->shared = p->shared && (*in_file == BATCH_LEAVE || *in_file == n);
    p->one = p->one && n == 1;
    if (p->given[input] == BATCH_LEAVE)
        p->given[input] = n;
    p->most = n > p->most ? n : p->most;
    *in_file = n;
}

static bool read_sizes(BatchPlan *p, const Module *m, Diags *d) {
    const Graph *g = m->graph;
    SampleFiles files = {0};
    bool ok = sample_files(m->arena, p->data->paths, p->data->n, &files, d);
    for (size_t f = 0; ok && f < files.n; f++) {
        int64_t in_file = BATCH_LEAVE;
        Npz *npz = npz_open(m->arena, files.paths[f], LOC_NONE, d);
        ok = npz != NULL;
        for (size_t i = 0; ok && i < g->n_in; i++) {
            int k =
                p->first[i] ? sample_array_of(npz, files.paths[f], g->in[i], sample_inputs(g)) : -1;
            const NpyArray *a = k < 0 ? NULL : npz_at(npz, (size_t)k);
            if (a && a->rank == g->in[i]->type.rank) /* samples_open complains of others */
                add_array(p, i, a->dims[0], &in_file);
        }
        npz_close(npz);
    }
    for (size_t i = 0; i < g->n_in; i++) /* samples_open misses the array */
        p->given[i] = p->first[i] && p->given[i] == BATCH_LEAVE ? 1 : p->given[i];
    return ok;
}

/* ---- what the graph says ---- */

static bool same_dim(const Value *x, const Value *y) {
    Dim a = x->type.dims[0], b = y->type.dims[0];
    return x == y || (dim_is_named(a) && dim_is_named(b) && str_eq(a.param, b.param));
}

/* Inputs with the first dimension of `like` (NULL: all) count samples, the others have what the
 * data have. */
static int64_t *sizes_for(const BatchPlan *p, const Module *m, const Value *like, int64_t samples) {
    const Graph *g = m->graph;
    int64_t *sizes = NEW_ARRAY(m->arena, int64_t, g->n_in + 1);
    for (size_t i = 0; i < g->n_in; i++)
        sizes[i] = !p->first[i]                        ? BATCH_LEAVE
                   : !like || same_dim(like, g->in[i]) ? samples
                                                       : p->given[i];
    return sizes;
}

static bool try_batch(BatchPlan *p, Module *m, const Value *like) {
    Batch *b = batch_find(m, sizes_for(p, m, like, BATCH_SIZE), p->most);
    if (b->kind == BATCH_APART || (b->kind == BATCH_SCALE && p->data->own_scales)) {
        p->batch = b;
        p->sizes = sizes_for(p, m, like, 1);
    } else if (!p->mixed) {
        p->mixed = b;
    }
    return p->batch != NULL;
}

/* All first dimensions together, else those of one name. */
static void look_for_batch(BatchPlan *p, Module *m) {
    const Graph *g = m->graph;
    bool several = false;
    for (size_t i = 0; i < g->n_in; i++)
        for (size_t k = 0; k < i; k++)
            several = several || (p->first[i] && p->first[k] && !same_dim(g->in[i], g->in[k]));
    if (p->shared && try_batch(p, m, NULL))
        return;
    for (size_t i = 0; i < g->n_in && several && p->data->n && p->steady; i++)
        if (p->first[i] && try_batch(p, m, g->in[i]))
            return;
}

/* ---- what the user says ---- */

static bool is_named(const Value *v, Str name) {
    Dim dim = v->type.dims[0];
    return str_eq(v->name, name) || (dim_is_named(dim) && str_eq(dim.param, name));
}

bool samples_can_name(const Module *m, const char *batch) {
    for (size_t i = 0; i < m->graph->n_in; i++)
        if (type_first_open(m->graph->in[i]->type) && is_named(m->graph->in[i], str_from(batch)))
            return true;
    return false;
}

static bool named_batch(BatchPlan *p, Module *m, Diags *d) {
    const Graph *g = m->graph;
    Str name = str_from(p->data->batch);
    const char **names = NEW_ARRAY(m->arena, const char *, 2 * g->n_in + 1);
    size_t n = 0;
    for (size_t i = 0; i < g->n_in; i++) {
        const Value *v = g->in[i];
        if (!p->first[i])
            continue;
        if (is_named(v, name)) {
            if (!try_batch(p, m, v)) /* then outputs are put one behind the other */
                p->batch = p->mixed;
            p->sizes = sizes_for(p, m, v, 1);
            return true;
        }
        names[n++] = arena_str(m->arena, v->name).s;
        if (dim_is_named(v->type.dims[0]))
            names[n++] = arena_str(m->arena, v->type.dims[0].param).s;
    }
    if (p->named)
        return diag_error(d, LOC_NONE,
                          "-batch: the data's first axis counts samples already, and each of them "
                          "has a dimension '%s' of its own",
                          p->data->batch);
    diag_error(d, LOC_NONE, "-batch: no graph input has an open first dimension called '%s'",
               p->data->batch);
    diag_did_you_mean(d, LOC_NONE, name, names, n);
    return false;
}

/* ---- the plan ---- */

static bool asks(const DataPaths *data, const char *what) {
    return data->batch && strcmp(data->batch, what) == 0;
}

static bool make_plan(BatchPlan *p, Module *m, Diags *d) {
    if (p->data->batch && !asks(p->data, "auto") && !asks(p->data, "none"))
        return named_batch(p, m, d);
    if (p->n_first && !p->one && !asks(p->data, "none"))
        look_for_batch(p, m);
    return true;
}

BatchPlan *samples_plan(Module *m, const DataPaths *data, Diags *d) {
    const Graph *g = m->graph;
    BatchPlan *p = NEW(m->arena, BatchPlan);
    *p = (BatchPlan){.data = data, .steady = true, .shared = true, .one = data->n > 0};
    p->named = data->batch && samples_can_name(m, data->batch);
    if (!sample_dims(m, data->paths, data->n, d))
        return NULL;
    p->given = NEW_ARRAY(m->arena, int64_t, g->n_in + 1);
    p->first = NEW_ARRAY(m->arena, bool, g->n_in + 1);
    for (size_t i = 0; i < g->n_in; i++) {
        p->given[i] = BATCH_LEAVE;
        p->first[i] = !g->in[i]->data && type_first_open(g->in[i]->type);
        p->n_first += p->first[i];
    }
    if (p->n_first && data->n && !read_sizes(p, m, d))
        return NULL;
    return !module_others_known(m) || make_plan(p, m, d) ? p : NULL;
}

bool plan_has_batch(const BatchPlan *p) {
    return !p->n_first || p->one || p->batch || (p->mixed && p->mixed->kind == BATCH_ONE);
}

/* ---- following it ---- */

static const Value *first_open(const BatchPlan *p, const Module *m) {
    for (size_t i = 0; i < m->graph->n_in; i++)
        if (p->first[i])
            return m->graph->in[i];
    return NULL;
}

/* "its first dimension N is no batch: Softmax 'y' mixes what stands along it" */
static const char *reason(const BatchPlan *p, const Module *m, Diags *d) {
    const Batch *b = p->mixed;
    Dim dim = first_open(p, m)->type.dims[0];
    Buf t = buf_new(m->arena);
    buf_fmt(&t, "its first dimension %s%s", dim_is_named(dim) ? diag_name(d, dim.param) : "",
            dim_is_named(dim) ? " " : "");
    buf_text(&t, b && b->kind == BATCH_UNKNOWN ? "may be no batch" : "is no batch");
    if (b && b->why) {
        buf_text(&t, ": ");
        if (b->node)
            buf_fmt(&t, "%s ", node_text(b->node));
        buf_text(&t, b->why);
    }
    return buf_as_str(&t).s;
}

/* What -batch would be given. */
static const char *batch_name(const BatchPlan *p, const Module *m, Diags *d) {
    const Value *v = first_open(p, m);
    return diag_name(d, dim_is_named(v->type.dims[0]) ? v->type.dims[0].param : v->name);
}

static bool ask(const BatchPlan *p, const Module *m, Diags *d) {
    const Value *v = first_open(p, m);
    const char *name = diag_name(d, v->name);
    if (p->data->n)
        return diag_error(d, v->loc,
                          "graph input %s: %s, and the files have it of several sizes, which one "
                          "program cannot have; -batch=%s takes it for samples all the same",
                          name, reason(p, m, d), batch_name(p, m, d));
    bool named = dim_is_named(v->type.dims[0]);
    return diag_error(d, v->loc,
                      "graph input %s: %s; its size is needed here: data, or %s%s%s fix it, and "
                      "-batch=%s takes it for samples all the same",
                      name, reason(p, m, d),
                      named ? "-bind=" : specialise_shape_option(m->arena, v),
                      named ? diag_name(d, v->type.dims[0].param) : "", named ? "=SIZE" : "",
                      batch_name(p, m, d));
}

/* It cannot run, which is told of it; nothing runs then, but where that is left out. */
static bool blames_unknown(const Batch *b) {
    return b->node && !b->node->def && !qop_find(b->node->domain, b->node->op);
}

static void tell_whole(const BatchPlan *p, const Module *m, Diags *d) {
    const Value *v = first_open(p, m);
    bool unknown = p->mixed && p->mixed->kind == BATCH_UNKNOWN;
    if (p->one || !p->mixed || (blames_unknown(p->mixed) && !p->data->runs_in_part) ||
        (p->data->told && *p->data->told))
        return;
    diag(d, unknown ? DIAG_WARNING : DIAG_REMARK, v->loc,
         "graph input %s: %s; the data's first axis is that dimension, not one of samples "
         "(-batch=%s takes it for samples)",
         diag_name(d, v->name), reason(p, m, d), batch_name(p, m, d));
    if (p->data->told)
        *p->data->told = true;
}

static void tell_one(const BatchPlan *p, const Module *m, Diags *d) {
    const Value *v = first_open(p, m);
    if (p->one || (p->data->told && *p->data->told))
        return;
    diag(d, DIAG_REMARK, v->loc,
         "graph input %s: the model fits together where its first dimension is 1, and at no other "
         "size that was tried%s",
         diag_name(d, v->name), p->data->n ? ": the data's first axis is one of samples" : "");
    if (p->data->told)
        *p->data->told = true;
}

/* The model as it is, with the data's dimensions. */
static bool bind_whole(BatchPlan *p, Module *m, Diags *d) {
    int64_t *given = sizes_for(p, m, NULL, 1);
    bool known = p->data->n && p->steady;
    for (size_t i = 0; i < m->graph->n_in; i++)
        given[i] = p->first[i] ? p->given[i] : BATCH_LEAVE;
    if (known && (p->one || batch_fits(m, given) || asks(p->data, "none"))) {
        tell_whole(p, m, d);
        return module_bind_first(m, given, d);
    }
    int64_t *ones = sizes_for(p, m, NULL, 1);
    if (p->mixed && p->mixed->kind == BATCH_ONE) {
        tell_one(p, m, d);
        return module_bind_first(m, ones, d);
    }
    if (known) { /* it says what does not fit */
        tell_whole(p, m, d);
        return module_bind_first(m, given, d);
    }
    return ask(p, m, d);
}

/* Whether a dimension of this name stands behind the first one of an input, too. */
static bool stands_inside(const Graph *g, Dim dim) {
    for (size_t i = 0; i < g->n_in; i++)
        for (int k = 1; k < g->in[i]->type.rank; k++)
            if (dim_is_named(dim) && dim_is_named(g->in[i]->type.dims[k]) &&
                str_eq(dim.param, g->in[i]->type.dims[k].param))
                return true;
    return false;
}

/* One sample, where other dimensions are not known, of which module_check_static tells; a first
 * dimension that is one of them counts no samples. */
static bool bind_ones(const BatchPlan *p, Module *m, Diags *d) {
    const Graph *g = m->graph;
    int64_t *ones = sizes_for(p, m, NULL, 1);
    for (size_t i = 0; i < g->n_in; i++)
        if (p->first[i] && stands_inside(g, g->in[i]->type.dims[0]))
            ones[i] = BATCH_LEAVE;
    return module_bind_first(m, ones, d);
}

bool samples_bind_plan(Module *m, BatchPlan *p, bool together, const Batch **batch, Diags *d) {
    bool apart = p->batch && together, ok = true;
    if (!module_others_known(m))
        ok = bind_ones(p, m, d);
    else if (p->n_first)
        ok = apart ? module_bind_first(m, p->sizes, d) : bind_whole(p, m, d);
    if (batch)
        *batch = apart && p->batch->kind == BATCH_APART ? p->batch : NULL;
    return ok && module_check_static(m, d);
}

bool samples_bind(Module *m, const DataPaths *data, const Batch **batch, Diags *d) {
    BatchPlan *p = samples_plan(m, data, d);
    return p && samples_bind_plan(m, p, true, batch, d);
}
