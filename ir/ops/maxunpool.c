/* MaxUnpool: what MaxPool took goes back to where its indices say. Only types changed. */
#include "ir/ops/told.h"

enum { X, INDICES, SHAPE };

typedef struct UnpoolAttrs {
    Ints kernel_shape, strides, pads;
} UnpoolAttrs;

static const AttrSpec attrs[] = {
    A_INTS_REQUIRED(UnpoolAttrs, kernel_shape),
    A_INTS(UnpoolAttrs, strides),
    A_INTS(UnpoolAttrs, pads),
    A_END,
};

/* How long axis i was before the pool, as far as the pool tells: what the indices count in. */
static Dim pooled_from(const UnpoolAttrs *a, Type x, int i) {
    int64_t in = x.dims[i].value;
    size_t k = (size_t)i - 2, n = (size_t)x.rank - 2;
    if (i < 2)
        return x.dims[i];
    if (in < 0)
        return dim_unknown();
    int64_t pads = a->pads.v ? dim_add(a->pads.v[k], a->pads.v[k + n]) : 0;
    int64_t reach = dim_mul(in - 1, a->strides.v ? a->strides.v[k] : 1);
    return dim_of(dim_add(reach, a->kernel_shape.v[k]) - pads);
}

/* The shape of the input, which that of the indices is, too. */
static Type pooled(const OpCtx *c) {
    Type x = op_type(c, X), at = op_type(c, INDICES);
    if (x.rank < 0) /* nothing was held against a rank then */
        return x;
    if (at.rank != x.rank)
        return x;
    Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
    for (int i = 0; i < x.rank; i++)
        dims[i] = dims[i].value < 0 ? at.dims[i] : dims[i];
    return type_tensor(type_real_elem(x), x.rank, dims);
}

static bool verify(const OpCtx *c) {
    const UnpoolAttrs *a = c->attrs;
    Type x = op_type(c, X), at = op_type(c, INDICES);
    Ints shape;
    if (x.rank < 0)
        return at.rank < 0 || at.rank > 2 ||
               op_error_in(c, INDICES, "indices must have rank 3 or more, not %d", at.rank);
    if (x.rank < 3)
        return op_error_in(c, X, "input must have rank 3 or more, not %d", x.rank);
    if (at.rank >= 0 && type_is_static(x) && type_is_static(at) && !type_same_shape(x, at))
        return op_error_in(c, INDICES, "the indices are %s, the input %s", type_text(c->arena, at),
                           type_text(c->arena, x));
    size_t n = (size_t)x.rank - 2;
    if (!op_list_fits(c, "kernel_shape", a->kernel_shape, n, 1) ||
        !op_list_fits(c, "strides", a->strides, n, 1) ||
        !op_list_fits(c, "pads", a->pads, 2 * n, 0))
        return false;
    for (int i = 2; i < x.rank; i++) {
        Dim from = pooled_from(a, x, i);
        if (x.dims[i].value >= 0 && (from.value < 0 || from.value > INT32_MAX))
            return op_error(c, "axis %d of the result would have length %lld", i,
                            (long long)from.value);
    }
    if (!op_ints(c, SHAPE, &shape))
        return true;
    if (shape.n != (size_t)x.rank)
        return op_error_in(c, SHAPE, "output_shape has %zu numbers, the input %d dimensions",
                           shape.n, x.rank);
    for (int i = 0; i < x.rank; i++)
        if (shape.v[i] < 0 || shape.v[i] > INT32_MAX || shape.v[i] < pooled_from(a, x, i).value)
            return op_error_in(c, SHAPE, "axis %d has length %lld, and %lld before it was pooled",
                               i, (long long)shape.v[i], (long long)pooled_from(a, x, i).value);
    return true;
}

static bool infer(OpCtx *c) {
    const UnpoolAttrs *a = c->attrs;
    Type x = pooled(c), count = op_type(c, SHAPE);
    Ints shape;
    if (x.kind != TYPE_TENSOR)
        return true;
    bool given = op_in(c, SHAPE) != NULL, known = given && op_ints(c, SHAPE, &shape);
    int rank = x.rank >= 0                                          ? x.rank
               : known                                              ? (int)shape.n
               : count.rank == 1 && count.dims[0].value <= MAX_RANK ? (int)count.dims[0].value
                                                                    : -1;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)(rank < 0 ? 0 : rank) + 1);
    for (int i = 0; i < rank; i++)
        dims[i] = known ? dim_of(shape.v[i]) : given ? dim_unknown() : pooled_from(a, x, i);
    c->out[0] = type_tensor(type_real_elem(x), rank, rank < 0 ? NULL : dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Type x = n->in[X]->type, y = n->out[0]->type;
    ElemType e = bind_elem(n->in[X]);
    qk_maxunpool_params p = {
        .rank = x.rank, .n = bind_count(n->in[X]), .size = bind_count(n->out[0])};
    int64_t places = 1;
    if (bind_count(n->in[INDICES]) != p.n)
        return bind_unsupported(b, n, "input and indices differ in shape");
    if (node_shape_operand(n) && !bind_check_shape(b, n, SHAPE))
        return false;
    for (int i = 0; i < x.rank; i++) {
        p.dim[i] = (int32_t)pooled_from(c->attrs, x, i).value;
        p.yd[i] = (int32_t)y.dims[i].value;
        places = dim_mul(places, p.dim[i]);
    }
    if (places > INT32_MAX)
        return bind_unsupported(b, n, "its indices count to %lld", (long long)places);
    if (!bind_call(b, n, bind_kernel(b, "maxunpool", 1, &e), &p, sizeof p, 3,
                   (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[INDICES]),
                           bind_value(b, n->out[0])}))
        return false;
    bind_within(b, n->in[INDICES], false, (int32_t[]){(int32_t)places}, 1);
    return true;
}

const OpDef op_MaxUnpool = {
    .domain = "",
    .name = "MaxUnpool",
    .attrs_size = sizeof(UnpoolAttrs),
    .attrs = attrs,
    .fixed = 1u << SHAPE,
    .shapes = 1u << SHAPE,
    .picks = 1u << INDICES,
    .verify = verify,
    .infer = infer,
    .bind = bind,
};
