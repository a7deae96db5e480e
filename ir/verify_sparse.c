#include "ir/verify_sparse.h"

static bool check_dims(const SparseTensor *s, Diags *d) {
    int64_t count = 1;
    if (s->rank == 0)
        return diag_error(d, s->loc, "a sparse tensor has at least one dimension");
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] <= 0)
            return diag_error(d, s->loc, "dimension %d of a sparse tensor is %lld, not above 0", i,
                              (long long)s->dims[i]);
        if (__builtin_mul_overflow(count, s->dims[i], &count))
            return diag_error(d, s->loc, "a sparse tensor has less than 2^63 elements");
    }
    return true;
}

/* Rank 1: places in the tensor laid out in a row. Rank 2: a row of coordinates for each value. */
static bool check_indices_shape(const SparseTensor *s, Diags *d) {
    const Tensor *x = s->indices;
    if (x->elem != ELEM_INT64)
        return diag_error(d, x->loc, "indices are int64, not %s", elem_name(x->elem));
    if (x->rank != 1 && x->rank != 2)
        return diag_error(d, x->loc, "indices have 1 or 2 dimensions, not %d", x->rank);
    if (x->dims[0] != s->values->dims[0])
        return diag_error(d, x->loc, "%lld value%s, but %lld indices",
                          (long long)s->values->dims[0], plural(s->values->dims[0]),
                          (long long)x->dims[0]);
    if (x->rank == 2 && x->dims[1] != s->rank)
        return diag_error(d, x->loc, "indices have %lld coordinates, the tensor %d dimensions",
                          (long long)x->dims[1], s->rank);
    return true;
}

/* The place of value `i` in the tensor laid out in a row; false where it lies outside. */
static bool place_of(const SparseTensor *s, size_t i, int64_t *place, Diags *d) {
    const Tensor *x = s->indices;
    size_t width = x->rank == 2 ? (size_t)s->rank : 1;
    int64_t count = 1;
    for (int k = 0; k < s->rank; k++)
        count *= s->dims[k];
    *place = 0;
    for (size_t k = 0; k < width; k++) {
        int64_t limit = x->rank == 2 ? s->dims[k] : count, v = tensor_int(x, i * width + k);
        if (v < 0 || v >= limit)
            return x->rank == 1
                       ? diag_error(d, x->loc, "the index of value %zu is %lld, outside 0 to %lld",
                                    i, (long long)v, (long long)limit - 1)
                       : diag_error(d, x->loc,
                                    "coordinate %zu of value %zu is %lld, outside 0 to %lld", k, i,
                                    (long long)v, (long long)limit - 1);
        *place = *place * limit + v;
    }
    return true;
}

static bool check_order(const SparseTensor *s, Diags *d) {
    int64_t before = -1, place;
    for (size_t i = 0; i < s->values->count; i++, before = place) {
        if (!place_of(s, i, &place, d))
            return false;
        if (place <= before)
            return diag_error(d, s->indices->loc,
                              "the index of value %zu %s the one before: indices ascend", i,
                              place == before ? "is" : "stands before");
    }
    return true;
}

bool verify_sparse(const SparseTensor *s, Diags *d) {
    if (!check_dims(s, d))
        return false;
    if (s->values->rank != 1)
        return diag_error(d, s->values->loc,
                          "the values of a sparse tensor have 1 dimension, not %d",
                          s->values->rank);
    if (!s->indices)
        return s->values->count == 0 || diag_error(d, s->loc, "a sparse tensor has no indices");
    return check_indices_shape(s, d) && (!s->indices->data || check_order(s, d));
}

/* ---- everywhere ---- */

typedef struct Check {
    Diags *d;
    bool ok;
} Check;

static void check_attrs(Check *c, const Attr *attrs, size_t n) {
    for (size_t k = 0; k < n; k++) {
        const Attr *a = &attrs[k];
        for (size_t i = 0; (a->kind == ATTR_SPARSE || a->kind == ATTR_SPARSES) && i < a->n; i++)
            c->ok = verify_sparse(a->v.sp[i], c->d) && c->ok;
    }
}

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    if (v->sparse && !v->misread)
        c->ok = verify_sparse(v->sparse, c->d) && c->ok;
}

static void check_nodes(Graph *g, void *ctx) {
    for (const Node *n = g->first; n; n = n->next)
        if (!n->misread)
            check_attrs(ctx, n->attrs, n->n_attrs);
}

bool verify_all_sparse(Module *m, Diags *d) {
    Check c = {d, true};
    module_each_value(m, check_value, &c);
    module_each_graph(m, check_nodes, &c);
    for (size_t i = 0; i < m->n_functions; i++)
        check_attrs(&c, m->functions[i]->defaults, m->functions[i]->n_defaults);
    return c.ok;
}
