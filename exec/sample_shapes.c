/* Shapes that data states and the model leaves open. */
#include "exec/sample_files.h"
#include "exec/samples.h"
#include "exec/specialise.h"
#include "support/npz.h"

typedef struct Shapes {
    Module *m;
    DimBind *binds;
    size_t n, cap;
    bool changed;
} Shapes;

static bool is_bound(const Shapes *s, Str name) {
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->binds[i].name, name))
            return true;
    return false;
}

/* What the array says of the dimensions behind the sample axis. */
static void take_dims(Shapes *s, Value *v, const NpyArray *array) {
    Type *t = &v->type;
    int skip = t->rank > 0 && (t->dims[0].value == 1 || t->dims[0].value < 0);
    if (t->kind != TYPE_TENSOR || t->rank < 1 || array->rank != t->rank - skip + 1)
        return; /* samples_open complains */
    Dim *dims = arena_copy(s->m->arena, t->dims, (size_t)t->rank * sizeof *dims);
    for (int i = skip; i < t->rank; i++) {
        int64_t value = array->dims[i - skip + 1];
        if (dims[i].value >= 0)
            continue;
        if (!dims[i].param.s)
            dims[i].value = value;
        else if (!is_bound(s, dims[i].param))
            ARENA_PUSH(s->m->arena, s->binds, s->n, s->cap, ((DimBind){dims[i].param, value}));
        s->changed = true;
    }
    t->dims = dims;
}

static bool is_open(const Value *v) {
    int first = v->type.kind == TYPE_TENSOR && v->type.rank > 0 ? 1 : 0;
    for (int i = first; i < v->type.rank; i++)
        if (v->type.dims[i].value < 0)
            return !v->data;
    return false;
}

bool samples_bind(Module *m, const char *const *paths, size_t n, Diags *d) {
    Shapes s = {.m = m};
    SampleFiles files = {0};
    const Graph *g = m->graph;
    bool open = false;
    for (size_t i = 0; i < g->n_in; i++)
        open = open || is_open(g->in[i]);
    if (!open || !n)
        return true;
    if (!sample_files(m->arena, paths, n, &files, d))
        return false;
    Npz *npz = npz_open(m->arena, files.paths[0], LOC_NONE, d);
    for (size_t i = 0; npz && i < g->n_in; i++) {
        int k = sample_array_of(npz, files.paths[0], g->in[i], sample_inputs(g));
        if (is_open(g->in[i]) && k >= 0)
            take_dims(&s, g->in[i], npz_at(npz, (size_t)k));
    }
    npz_close(npz);
    return npz && (!s.changed || module_bind_dims(m, s.binds, s.n, d));
}
