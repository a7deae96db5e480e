/* All dimensions of one size become 1 at once, in inputs, constants and parameters: shapes that
 * fitted mostly still do. Shapes of results are forgotten and inferred anew. */
#include "passes/shrink/shrink.h"

typedef struct Sizes {
    Module *m;
    int64_t *size; /* distinct, in the order met */
    bool *taken;
    size_t n, cap;
} Sizes;

static void note_size(Sizes *s, int64_t size) {
    for (size_t i = 0; i < s->n; i++)
        if (s->size[i] == size)
            return;
    if (size > 1)
        ARENA_PUSH(s->m->arena, s->size, s->n, s->cap, size);
}

static bool shrunk(const Sizes *s, int64_t size) {
    for (size_t i = 0; i < s->n; i++)
        if (s->size[i] == size)
            return s->taken[i];
    return false;
}

static void note_type(Sizes *s, Type t) {
    for (int i = 0; t.kind == TYPE_TENSOR && i < t.rank; i++)
        note_size(s, t.dims[i].value);
}

static void note_graph(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_in; i++)
        note_type(ctx, g->in[i]->type);
    for (size_t i = 0; i < g->n_consts; i++)
        note_type(ctx, g->consts[i]->type);
}

/* The parameters at index 0 stand for all. */
static const Quant *shrink_quant(const Sizes *s, const Quant *q) {
    if (!q || q->n_axes != 1 || q->block[0] != 1 || !shrunk(s, (int64_t)q->n_scale))
        return q;
    Quant *one = quant_copy(s->m->arena, q);
    one->n_scale = 1;
    one->n_zp = q->n_zp ? 1 : 0;
    one->alias = STR_NONE;
    return one;
}

static void shrink_type(const Sizes *s, Type *t) {
    if (t->kind != TYPE_TENSOR)
        return;
    t->quant = shrink_quant(s, t->quant);
    if (t->rank < 1)
        return;
    Dim *dims = arena_copy(s->m->arena, t->dims, (size_t)t->rank * sizeof *dims);
    for (int i = 0; i < t->rank; i++)
        if (shrunk(s, dims[i].value))
            dims[i].value = 1;
    t->dims = dims;
}

static void copy_element(const Tensor *from, size_t i, Tensor *to, uint8_t *bytes, size_t k) {
    int bits = elem_bits(from->elem);
    if (bits >= 8)
        memcpy(bytes + k * (size_t)bits / 8, from->data + i * (size_t)bits / 8, (size_t)bits / 8);
    else
        elem_store_int(to->elem, bytes, k, elem_load_int(from->elem, from->data, i));
}

static Tensor *shrink_tensor(const Sizes *s, Tensor *t) {
    size_t rank = (size_t)t->rank;
    int64_t *dims = NEW_ARRAY(s->m->arena, int64_t, rank);
    int64_t *at = NEW_ARRAY(s->m->arena, int64_t, rank);
    bool changed = false;
    for (int i = 0; i < t->rank; i++) {
        dims[i] = shrunk(s, t->dims[i]) ? 1 : t->dims[i];
        changed |= dims[i] != t->dims[i];
    }
    if (!changed || !t->data || elem_bits(t->elem) == 0)
        return t;
    uint8_t *bytes;
    Tensor *to = tensor_new(s->m->arena, t->elem, t->rank, dims, &bytes);
    for (size_t k = 0; k < to->count; k++) {
        size_t index = 0;
        for (int i = 0; i < t->rank; i++)
            index = index * (size_t)t->dims[i] + (size_t)at[i];
        copy_element(t, index, to, bytes, k);
        for (int i = t->rank; i-- > 0;) {
            if (++at[i] < dims[i])
                break;
            at[i] = 0;
        }
    }
    return to;
}

static void shrink_graph(Graph *g, void *ctx) {
    const Sizes *s = ctx;
    for (size_t i = 0; i < g->n_in; i++) {
        shrink_type(s, &g->in[i]->type);
        if (g->in[i]->data)
            g->in[i]->data = shrink_tensor(s, g->in[i]->data);
    }
    for (size_t i = 0; i < g->n_consts; i++) {
        shrink_type(s, &g->consts[i]->type);
        if (g->consts[i]->data)
            g->consts[i]->data = shrink_tensor(s, g->consts[i]->data);
    }
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i] || n->out[i]->type.kind != TYPE_TENSOR)
            continue;
        Type *t = &n->out[i]->type;
        shrink_type(s, t);
        if (!n->def || !n->def->infer)
            continue; /* nobody would find the shape out */
        t->rank = -1;
        t->dims = NULL;
        n->out[i]->declared = false;
    }
}

void shrink_sizes(Module *m, Places *places) {
    Sizes s = {.m = m};
    shrink_each_graph(m, note_graph, &s);
    s.taken = NEW_ARRAY(m->arena, bool, s.n + 1);
    bool any = false;
    for (size_t i = 0; i < s.n; i++)
        any |= s.taken[i] = place_take(places);
    if (!any)
        return;
    shrink_each_graph(m, shrink_graph, &s);
    m->graph->extra = STR_NONE; /* it may state the shape of an output */
}
