/* ScatterElements, Scatter (its name until opset 10) and ScatterND: a copy of the data with
 * elements or slices at computed places changed. 16 added reductions add and mul, 18 max and min.
 */
#include "ir/ops/bind.h"

enum { DATA, INDICES, UPDATES };

typedef struct ScatterAttrs {
    int64_t axis; /* ScatterElements */
    Str reduction;
} ScatterAttrs;

static const AttrSpec elements_attrs[] = {
    A_INT(ScatterAttrs, axis, 0),
    A_WORD(ScatterAttrs, reduction, "none", "none add mul max min"),
    A_END,
};

static const AttrSpec nd_attrs[] = {
    A_WORD(ScatterAttrs, reduction, "none", "none add mul max min"),
    A_END,
};

/* Its number for the kernels, -1 where there is none. */
static int32_t reduction(const OpCtx *c) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const ScatterAttrs *a = c->attrs;
    for (int32_t i = 0; i < 5; i++)
        if (str_is(a->reduction, names[i]))
            return i;
    return -1;
}

/* The data first: what nothing changes stays. */
static int copied(Binder *b, const Node *n) {
    int y = bind_value(b, n->out[0]);
    bind_copy(b, n, bind_value(b, n->in[DATA]), y);
    return y;
}

/* ---- ScatterElements ---- */

static bool elements_verify(const OpCtx *c) {
    const ScatterAttrs *a = c->attrs;
    Type i = op_type(c, INDICES), u = op_type(c, UPDATES);
    if (i.rank >= 0 && u.rank >= 0 &&
        !(i.rank == u.rank && (!type_is_static(i) || !type_is_static(u) || type_same_shape(i, u))))
        return op_error_in(c, UPDATES, "updates are %s, indices %s", type_text(c->arena, u),
                           type_text(c->arena, i));
    return op_elements_fit(c, DATA, INDICES, a->axis);
}

static bool elements_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ScatterAttrs *a = c->attrs;
    Type x = n->in[DATA]->type, i = n->in[INDICES]->type;
    ElemType types[] = {bind_elem(n->in[DATA]), bind_elem(n->in[INDICES])};
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    if (!type_same_shape(i, n->in[UPDATES]->type))
        return bind_unsupported(b, n, "updates and indices differ in shape");
    qk_scatter_elements_params p = {.rank = x.rank,
                                    .length = (int32_t)x.dims[axis].value,
                                    .step = bind_extent(x, axis + 1, x.rank),
                                    .reduction = reduction(c)};
    if (!op_indices_fit(c, INDICES, &p.length, 1))
        return false;
    for (int k = 0; k < x.rank; k++) {
        p.dim[k] = (int32_t)i.dims[k].value;
        p.ys[k] = k == axis ? 0 : bind_extent(x, k + 1, x.rank);
    }
    return bind_call(
        b, n, bind_kernel(b, "scatter_elements", 2, types), &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[UPDATES]), bind_value(b, n->in[INDICES]), copied(b, n)});
}

#define ELEMENTS                                                                                   \
    .domain = "", .attrs_size = sizeof(ScatterAttrs), .attrs = elements_attrs,                     \
    .verify = elements_verify, .infer = op_same_type, .bind = elements_bind

const OpDef op_ScatterElements = {ELEMENTS, .name = "ScatterElements"};

static bool take_new_name(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)names;
    (void)d;
    if (from < 11 && to >= 11)
        n->op = STR("ScatterElements");
    return true;
}

const OpDef op_Scatter = {ELEMENTS, .name = "Scatter", .upgrade = take_new_name};

/* ---- ScatterND ---- */

static bool nd_verify(const OpCtx *c) {
    Type x = op_type(c, DATA), i = op_type(c, INDICES), u = op_type(c, UPDATES);
    if (i.rank == 0)
        return op_error_in(c, INDICES, "the indices are a scalar");
    int64_t k = i.rank > 0 ? i.dims[i.rank - 1].value : -1;
    if (x.rank < 0 || k < 0)
        return true;
    if (k > x.rank)
        return op_error_in(c, INDICES, "an index has %lld numbers, the data %d dimensions",
                           (long long)k, x.rank);
    if (u.rank >= 0 && u.rank != i.rank - 1 + x.rank - k)
        return op_error_in(c, UPDATES, "updates have rank %d, must have %lld", u.rank,
                           (long long)(i.rank - 1 + x.rank - k));
    return true;
}

static bool nd_bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[DATA]->type, i = n->in[INDICES]->type;
    ElemType types[] = {bind_elem(n->in[DATA]), bind_elem(n->in[INDICES])};
    qk_scatter_nd_params p = {.n = bind_extent(i, 0, i.rank - 1),
                              .k = (int32_t)i.dims[i.rank - 1].value,
                              .reduction = reduction(c)};
    p.inner = bind_extent(x, p.k, x.rank);
    for (int k = 0; k < p.k; k++)
        p.dim[k] = (int32_t)x.dims[k].value;
    if (!op_indices_fit(c, INDICES, p.dim, (size_t)p.k))
        return false;
    if ((int64_t)p.n * p.inner != bind_count(n->in[UPDATES]))
        return bind_unsupported(b, n, "updates are %s, not %d slices of %d elements",
                                type_text(binder_arena(b), n->in[UPDATES]->type), p.n, p.inner);
    return bind_call(
        b, n, bind_kernel(b, "scatter_nd", 2, types), &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[UPDATES]), bind_value(b, n->in[INDICES]), copied(b, n)});
}

const OpDef op_ScatterND = {
    .domain = "",
    .name = "ScatterND",
    .attrs_size = sizeof(ScatterAttrs),
    .attrs = nd_attrs,
    .verify = nd_verify,
    .infer = op_same_type,
    .bind = nd_bind,
};
