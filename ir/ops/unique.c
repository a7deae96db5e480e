/* Unique: 28 added types. */
#include "ir/ops/bind.h"

enum { Y, FIRST, WHICH, TIMES, RESULTS };

typedef struct UniqueAttrs {
    int64_t axis, sorted;
} UniqueAttrs;

static const AttrSpec attrs[] = {
    A_INT(UniqueAttrs, axis, 0),
    A_FLAG(UniqueAttrs, sorted, 1),
    A_END,
};

/* Without an axis all elements in a row are looked at. */
static bool is_flat(const OpCtx *c) {
    return !node_attr(c->node, "axis");
}

static bool verify(const OpCtx *c) {
    const UniqueAttrs *a = c->attrs;
    int axis;
    return is_flat(c) || op_type(c, 0).rank < 0 || op_axis(c, a->axis, op_type(c, 0).rank, &axis);
}

static bool infer(OpCtx *c) {
    const UniqueAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    Dim open = dim_unknown(), all = open;
    int axis = 0, rank = is_flat(c) ? 1 : x.rank;
    size_t count;
    if (x.kind != TYPE_TENSOR)
        return true;
    Dim *dims = rank > 0 ? NEW_ARRAY(c->arena, Dim, (size_t)rank) : NULL;
    if (is_flat(c)) {
        all = type_count(x, &count) ? dim_of((int64_t)count) : open;
    } else if (rank > 0) {
        memcpy(dims, x.dims, (size_t)rank * sizeof *dims);
        if (!op_axis(c, a->axis, rank, &axis))
            return false;
        all = dims[axis];
    }
    if (rank > 0)
        dims[axis] = open;
    c->out[Y] = type_tensor(type_real_elem(x), rank, dims);
    for (size_t i = FIRST; i < c->n_out; i++)
        c->out[i] = type_tensor(ELEM_INT64, 1,
                                arena_copy(c->arena, i == WHICH ? &all : &open, sizeof(Dim)));
    return true;
}

static int64_t longest(const OpCtx *c) {
    const UniqueAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    size_t all;
    int axis;
    if (!type_count(x, &all))
        return -1;
    return is_flat(c) || !op_axis(c, a->axis, x.rank, &axis) ? (int64_t)all : x.dims[axis].value;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const UniqueAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    ElemType e = bind_elem(n->in[0]);
    int axis = 0;
    if (!is_flat(c) && !op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_unique_params p = {.outer = is_flat(c) ? 1 : bind_extent(x, 0, axis),
                          .axis = is_flat(c) ? bind_count(n->in[0]) : (int32_t)x.dims[axis].value,
                          .inner = is_flat(c) ? 1 : bind_extent(x, axis + 1, x.rank),
                          .sorted = a->sorted != 0};
    p.room = (int32_t)bind_bound(b, n, p.axis);
    size_t slices = (size_t)p.axis, room = (size_t)p.room;
    Counted y = {.most = (size_t)p.outer * room * (size_t)p.inner,
                 .axis = axis,
                 .count = bind_temp(b, ELEM_INT64, 1)};
    Counted list = {.most = room, .axis = 0, .count = y.count};
    int64_t length = p.axis;
    Counted all = {.most = slices, .axis = 0, .count = bind_const(b, ELEM_INT64, 1, &length, NULL)};
    int args[] = {bind_value(b, n->in[0]),
                  bind_scratch(b, ELEM_INT32, slices),
                  bind_scratch(b, ELEM_INT32, slices),
                  bind_counted(b, n, Y, e, y),
                  bind_counted(b, n, FIRST, ELEM_INT64, list),
                  bind_counted(b, n, WHICH, ELEM_INT64, all), /* which the file may leave open */
                  bind_counted(b, n, TIMES, ELEM_INT64, list),
                  y.count};
    return bind_call(b, n, bind_kernel(b, "unique", 1, &e), &p, sizeof p, 8, args);
}

const OpDef op_Unique = {
    .domain = "",
    .name = "Unique",
    .attrs_size = sizeof(UniqueAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .counts = true,
    .longest = longest,
    .bind = bind,
};
