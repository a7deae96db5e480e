/* Graph inputs whose values settle shapes (axes, sizes, counts), taken from the data as constants.
 */
#include "exec/fold.h"
#include "exec/lengths.h"
#include "exec/sample_files.h"
#include "exec/samples.h"
#include "ir/ops/op.h"
#include "support/npz.h"

enum { MOST_ELEMENTS = 4096 };

typedef struct Settle {
    Module *m;
    Diags *d;
    bool *seen;         /* by value id */
    const Node **user;  /* by value id of a graph input: whom it settles something for */
    const Value **work; /* to be looked at */
    size_t n_work, cap_work;
    bool any;
} Settle;

/* ---- which inputs ---- */

/* Shapes come as short lists; what is larger is data that shapes happen to follow from. */
static bool is_small(const Value *v) {
    size_t count;
    return v->type.kind == TYPE_TENSOR && v->type.rank >= 0 && v->type.rank <= 1 &&
           elem_bits(v->type.elem) >= 8 && (!type_count(v->type, &count) || count <= MOST_ELEMENTS);
}

static void push(Settle *s, const Value *v) {
    if (!v || v->data || s->seen[v->id])
        return;
    s->seen[v->id] = true;
    ARENA_PUSH(s->m->arena, s->work, s->n_work, s->cap_work, v);
}

static void look_at(Settle *s, const Value *v, const Node *user) {
    if (v->kind == VALUE_INPUT && v->graph == s->m->graph && is_small(v)) {
        s->user[v->id] = user;
        s->any = true;
    }
    const Node *n = v->def;
    if (!n || (n->def && n->def->from_types))
        return;
    for (size_t i = 0; i < n->n_in; i++)
        push(s, n->in[i]);
    for (size_t i = 0; !n->faulty && n->def && n->def->yields_results && i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
            push(s, n->attrs[i].v.g[k]->out[v->index]);
}

/* All that the value is computed from: a list, as chains of nodes may be long. */
static void mark(Settle *s, const Value *v, const Node *user) {
    push(s, v);
    while (s->n_work)
        look_at(s, s->work[--s->n_work], user);
}

/* Operands that have to be constants: of QOperators all that are no tensors. */
static uint32_t fixed_operands(const Node *n) {
    uint32_t all = n->def ? n->def->fixed : 0;
    for (size_t i = 1; !n->def && qop_find(n->domain, n->op) && i < n->n_in && i < 32; i++)
        all |= n->in[i] && is_small(n->in[i]) ? 1u << i : 0;
    return all;
}

static void look_at_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in && i < 32; i++)
        if (fixed_operands(n) >> i & 1)
            mark(ctx, n->in[i], n);
}

/* ---- their values ---- */

/* A list has no batch dimension that the samples' axis would replace, but for one of 1. */
static SampleLayout list_layout(const Value *v, const NpyArray *a) {
    if (v->type.rank == 1 && v->type.dims[0].value != 1) {
        if (a->rank == 1)
            return (SampleLayout){.fits = true, .whole = true, .n = 1};
        return (SampleLayout){
            .fits = a->rank == 2, .extra = true, .data = 1, .n = a->rank == 2 ? a->dims[0] : 0};
    }
    return sample_layout(v->type, a);
}

/* Elements of a sample. */
static size_t list_length(const NpyArray *a, SampleLayout l) {
    return l.data < a->rank ? (size_t)a->dims[l.data] : 1;
}

/* The one value that all samples of the array and of those before have; `same` is false where they
 * have several. */
static bool same_samples(const Settle *s, Npz *z, size_t at, SampleLayout l, uint8_t **first,
                         bool *same) {
    const NpyArray *array = npz_at(z, at);
    size_t count = list_length(array, l), bytes = count * array->elem_size;
    NpyReader *r = npy_reader(z, at);
    uint8_t *sample = arena_alloc(s->m->arena, bytes + 1);
    bool ok = r != NULL;
    for (int64_t i = 0; ok && i < l.n; i++) {
        ok = npy_read_at(r, (uint64_t)i * count, count, sample);
        *same = *same && (!ok || !*first || memcmp(*first, sample, bytes) == 0);
        if (ok && !*first)
            *first = arena_copy(s->m->arena, sample, bytes + 1);
    }
    npy_reader_close(r);
    return ok;
}

/* False after an error. */
static bool become_const(Settle *s, Value *v, const NpyArray *array, const uint8_t *data) {
    int64_t dim = (int64_t)list_length(array, list_layout(v, array));
    uint8_t *bytes;
    Tensor *t = tensor_new(s->m->arena, v->type.elem, v->type.rank, &dim, &bytes);
    if (!sample_convertible(v, (ElemType)array->elem))
        return true; /* samples_open complains */
    if (!sample_convert(v, (ElemType)array->elem, data, bytes, t->count, s->d))
        return false;
    diag_remark_once(s->d, v->loc, "input %s is taken from the data before anything runs: %s",
                     diag_name(s->d, v->name), node_text(s->user[v->id]));
    v->data = t;
    v->type = tensor_type(s->m->arena, t);
    v->kind = VALUE_CONST;
    v->declared = false;
    ARENA_PUSH(s->m->arena, s->m->graph->consts, s->m->graph->n_consts, s->m->graph->cap_consts, v);
    return true;
}

/* The array has samples that a list or a number could be. */
static bool fits(const NpyArray *a, SampleLayout l) {
    return a->elem && l.fits && l.n > 0 && list_length(a, l) <= MOST_ELEMENTS;
}

static bool check_length(const Settle *s, const Value *v, const NpyArray *a, SampleLayout l,
                         const char *path) {
    int64_t want = v->type.rank == 1 ? v->type.dims[0].value : -1,
            have = (int64_t)list_length(a, l);
    if (!l.fits || want < 0 || want == have)
        return true;
    return diag_error(s->d, v->loc,
                      "'%s': array for graph input %s has lists of %lld elements, expected %lld",
                      diag_name(s->d, str_from(path)), diag_name(s->d, v->name), (long long)have,
                      (long long)want);
}

/* False after an error. An input that no file has, or in another shape, or with several values,
 * stays one: who needs to know it will complain. */
static bool take(Settle *s, Value *v, const SampleFiles *files) {
    uint8_t *first = NULL;
    NpyArray array = {0};
    bool same = true;
    for (size_t i = 0; i < files->n; i++) {
        Npz *z = npz_open(s->m->arena, files->paths[i], LOC_NONE, s->d);
        int at = z ? sample_array_of(z, files->paths[i], v, sample_inputs(s->m->graph)) : -1;
        bool ok = z != NULL;
        if (at >= 0) {
            const NpyArray *a = npz_at(z, (size_t)at);
            SampleLayout l = list_layout(v, a), was = list_layout(v, &array);
            same = same && fits(a, l) &&
                   (!first ||
                    (array.elem == a->elem && list_length(&array, was) == list_length(a, l)));
            array = *a;
            ok = check_length(s, v, a, l, files->paths[i]) &&
                 (!same || same_samples(s, z, (size_t)at, l, &first, &same));
        }
        npz_close(z);
        if (!ok)
            return false;
    }
    return !first || !same || become_const(s, v, &array, first);
}

/* ---- bounds ---- */

/* Lengths of which the model states how many there may be (-max-elements). */
typedef struct Bounds {
    Arena *arena;
    LengthBound *items;
    size_t n, cap;
    Diags *d;
    bool ok;
} Bounds;

static void note_bound(Value *v, void *ctx) {
    Bounds *x = ctx;
    LengthBound b;
    if (!length_bound_of(v, &b, x->d))
        x->ok = false;
    else if (b.most >= 0)
        ARENA_PUSH(x->arena, x->items, x->n, x->cap, b);
}

/* What the data settled is held against them, as what a run tells is (exec/evaluate.c). */
static bool bounds_hold(const Bounds *x) {
    for (size_t i = 0; i < x->n; i++) {
        const LengthBound *b = &x->items[i];
        const Type *t = &b->value->type;
        if (b->axis < t->rank && t->dims[b->axis].value >= 0 &&
            !length_check(b, t->dims[b->axis].value, x->d))
            return false;
    }
    return x->ok;
}

bool samples_settle(Module *m, const char *const *paths, size_t n, Diags *d) {
    Settle s = {.m = m,
                .d = d,
                .seen = NEW_ARRAY(m->arena, bool, m->n_values),
                .user = NEW_ARRAY(m->arena, const Node *, m->n_values)};
    SampleFiles files = {0};
    Graph *g = m->graph;
    size_t kept = 0;
    module_each_graph(m, look_at_graph, &s);
    if (!s.any || !n)
        return module_refine_early(m, d);
    if (!sample_files(m->arena, paths, n, &files, d))
        return false;
    Bounds bounds = {.arena = m->arena, .d = d, .ok = true};
    module_each_value(m, note_bound, &bounds);
    for (size_t i = 0; i < g->n_in; i++)
        if (s.user[g->in[i]->id] && !take(&s, g->in[i], &files))
            return false;
    for (size_t i = 0; i < g->n_in; i++)
        if (g->in[i]->kind == VALUE_INPUT)
            g->in[kept++] = g->in[i];
    g->n_in = kept;
    if (!module_refine_early(m, d))
        return false;
    if (bounds.n)
        module_fold(m, NULL); /* lengths that nodes compute of the data are settled, too */
    return bounds_hold(&bounds);
}
