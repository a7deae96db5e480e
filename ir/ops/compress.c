/* Compress: 11 made negative axes legal, 28 added types. */
#include "ir/ops/bind.h"

enum { X, CONDITION };

typedef struct CompressAttrs {
    int64_t axis;
} CompressAttrs;

static const AttrSpec attrs[] = {
    A_INT(CompressAttrs, axis, 0),
    A_END,
};

/* Without an axis it picks of all elements in a row. */
static bool is_flat(const OpCtx *c) {
    return !node_attr(c->node, "axis");
}

static bool verify(const OpCtx *c) {
    const CompressAttrs *a = c->attrs;
    Type x = op_type(c, X), flags = op_type(c, CONDITION);
    int axis;
    if (flags.rank >= 0 && flags.rank != 1)
        return op_error_in(c, CONDITION, "the condition is a list, not of rank %d", flags.rank);
    return is_flat(c) || x.rank < 0 || op_axis(c, a->axis, x.rank, &axis);
}

static bool infer(OpCtx *c) {
    const CompressAttrs *a = c->attrs;
    Type x = op_type(c, X);
    int axis = 0;
    if (x.kind != TYPE_TENSOR)
        return true;
    int rank = is_flat(c) ? 1 : x.rank;
    Dim *dims = rank > 0 ? NEW_ARRAY(c->arena, Dim, (size_t)rank) : NULL;
    if (!is_flat(c) && rank > 0) {
        memcpy(dims, x.dims, (size_t)rank * sizeof *dims);
        if (!op_axis(c, a->axis, rank, &axis))
            return false;
    }
    if (rank > 0)
        dims[axis] = dim_unknown();
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

/* Flags beyond the axis pick nothing. */
static int64_t longest(const OpCtx *c) {
    const CompressAttrs *a = c->attrs;
    Type x = op_type(c, X), flags = op_type(c, CONDITION);
    size_t all, most;
    int axis;
    if (!type_count(x, &all) || !type_count(flags, &most))
        return -1;
    if (!is_flat(c) && op_axis(c, a->axis, x.rank, &axis))
        all = (size_t)x.dims[axis].value;
    return (int64_t)(all < most ? all : most);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const CompressAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    ElemType e = bind_elem(n->in[X]);
    int axis = 0;
    if (!is_flat(c) && !op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_compress_params p = {.outer = is_flat(c) ? 1 : bind_extent(x, 0, axis),
                            .axis = is_flat(c) ? bind_count(n->in[X]) : (int32_t)x.dims[axis].value,
                            .inner = is_flat(c) ? 1 : bind_extent(x, axis + 1, x.rank),
                            .flags = bind_count(n->in[CONDITION])};
    p.flags = p.flags < p.axis ? p.flags : p.axis;
    p.room = (int64_t)p.outer * bind_bound(b, n, p.flags) * p.inner;
    Counted y = {.most = (size_t)p.room, .axis = axis, .count = bind_temp(b, ELEM_INT64, 1)};
    return bind_call(b, n, bind_kernel(b, "compress", 1, &e), &p, sizeof p, 4,
                     (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[CONDITION]),
                             bind_counted(b, n, 0, e, y), y.count});
}

const OpDef op_Compress = {
    .domain = "",
    .name = "Compress",
    .attrs_size = sizeof(CompressAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .picks = 1u << CONDITION,
    .counts = true,
    .longest = longest,
    .bind = bind,
};
