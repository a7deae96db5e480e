/* Shapes that data states and the model leaves open. */
#include "exec/sample_files.h"
#include "exec/samples.h"
#include "exec/specialise.h"
#include "ir/ops/op.h"
#include "support/npz.h"

typedef struct Shapes {
    Module *m;
    Diags *d;
    DimBind *binds; /* of names; value -1: the data say several */
    size_t n, cap;
    bool changed;
} Shapes;

/* Exporters give dimensions that differ one name ("?"), and onnxruntime lets them differ: then each
 * is what its array says, and the name stands for nothing. */
static void bind_name(Shapes *s, const Value *v, Str name, int64_t value) {
    for (size_t i = 0; i < s->n; i++) {
        DimBind *b = &s->binds[i];
        if (!str_eq(b->name, name))
            continue;
        if (b->value >= 0 && b->value != value && !str_is(name, "?"))
            diag_warning(s->d, v->loc,
                         "dimensions called '%s' are %lld and %lld in the data: they are taken as "
                         "different ones",
                         diag_name(s->d, name), (long long)b->value, (long long)value);
        b->value = b->value == value ? value : -1;
        return;
    }
    ARENA_PUSH(s->m->arena, s->binds, s->n, s->cap, ((DimBind){name, value}));
}

/* An input of which not even the rank is stated has that of its array, whose first axis counts
 * samples where the graph lets it, as an open first dimension does. */
static void take_rank(Shapes *s, Value *v, const NpyArray *array) {
    Dim *dims = NEW_ARRAY(s->m->arena, Dim, (size_t)array->rank + 1);
    for (int i = 0; i < array->rank; i++)
        dims[i] = i ? dim_of(array->dims[i]) : dim_unknown();
    v->type.rank = array->rank;
    v->type.dims = dims;
    s->changed = true;
}

/* What the array says of the dimensions of a sample. */
static bool take_dims(Shapes *s, Value *v, const NpyArray *array, const char *path) {
    Type *t = &v->type;
    SampleLayout l = sample_layout(*t, array);
    bool behind = false;
    for (int i = 1; i < t->rank; i++)
        behind |= t->dims[i].value < 0;
    if (t->kind != TYPE_TENSOR || (!l.fits && !behind))
        return true; /* samples_open complains */
    if (!l.fits)
        return diag_error(
            s->d, v->loc,
            "'%s': array for graph input %s has %d dimensions, expected those of the input, "
            "%s, or one more in front, the samples",
            path, diag_name(s->d, v->name), array->rank, type_text(s->m->arena, v->type));
    Dim *dims = arena_copy(s->m->arena, t->dims, (size_t)t->rank * sizeof *dims);
    for (int i = l.extra ? 0 : 1; i < t->rank; i++) {
        if (dims[i].value >= 0)
            continue;
        dims[i].value = array->dims[i + l.extra];
        if (dims[i].param.s)
            bind_name(s, v, dims[i].param, dims[i].value);
        dims[i].param = STR_NONE;
        s->changed = true;
    }
    t->dims = dims;
    return true;
}

/* The names stand in types that the model states, too. */
static bool bind_names(Shapes *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->binds[i].value >= 0)
            s->binds[kept++] = s->binds[i];
    return module_bind_known(s->m, s->binds, kept, s->d);
}

static bool has_no_rank(const Value *v) {
    return v->type.kind == TYPE_TENSOR && v->type.rank < 0;
}

static bool is_open(const Value *v) {
    if (has_no_rank(v))
        return !v->data;
    for (int i = 0; i < v->type.rank; i++)
        if (v->type.dims[i].value < 0)
            return !v->data;
    return false;
}

bool sample_dims(Module *m, const char *const *paths, size_t n, Diags *d) {
    Shapes s = {.m = m, .d = d};
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
    bool ok = npz != NULL;
    for (size_t i = 0; npz && i < g->n_in; i++) {
        int k = sample_array_of(npz, files.paths[0], g->in[i], sample_inputs(g));
        if (k < 0 || !is_open(g->in[i]))
            continue;
        if (has_no_rank(g->in[i]))
            take_rank(&s, g->in[i], npz_at(npz, (size_t)k));
        else
            ok = take_dims(&s, g->in[i], npz_at(npz, (size_t)k), files.paths[0]) && ok;
    }
    npz_close(npz);
    return ok && (!s.changed || bind_names(&s));
}
