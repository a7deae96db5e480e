/* Shape and Size. Shape: 15 added start and end. */
#include "ir/ops/bind.h"

typedef struct ShapeAttrs {
    int64_t start, end;
} ShapeAttrs;

static const AttrSpec shape_attrs[] = {
    A_INT(ShapeAttrs, start, 0),
    A_INT(ShapeAttrs, end, INT64_MAX),
    A_END,
};

static int bound(int64_t v, int rank) {
    v += v < 0 ? rank : 0;
    return (int)(v < 0 ? 0 : v > rank ? rank : v);
}

static bool shape_infer(OpCtx *c) {
    const ShapeAttrs *a = c->attrs;
    int rank = op_type(c, 0).rank;
    int64_t n = rank < 0 ? -1 : bound(a->end, rank) - bound(a->start, rank);
    Dim *dims = NEW_ARRAY(c->arena, Dim, 1);
    dims[0] = rank < 0 ? dim_unknown() : dim_of(n < 0 ? 0 : n);
    c->out[0] = type_tensor(ELEM_INT64, 1, dims);
    return true;
}

static const Tensor *shape_from_types(const OpCtx *c) {
    const ShapeAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    size_t count;
    if (x.kind != TYPE_TENSOR || !type_count(x, &count))
        return NULL;
    int start = bound(a->start, x.rank), end = bound(a->end, x.rank);
    int64_t *dims = NEW_ARRAY(c->arena, int64_t, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = x.dims[i].value;
    int64_t length = end > start ? end - start : 0;
    return tensor_of(c->arena, ELEM_INT64, 1, &length, dims + start);
}

/* Known before anything runs: a constant. */
static bool bind_known(Binder *b, const Node *n, const OpCtx *c) {
    const Tensor *t = n->def->from_types(c);
    int buffer = bind_const(b, ELEM_INT64, t->count, t->data, "a shape");
    bind_is(b, buffer, n->out[0]);
    return true;
}

const OpDef op_Shape = {
    .domain = "",
    .name = "Shape",
    .attrs_size = sizeof(ShapeAttrs),
    .attrs = shape_attrs,
    .infer = shape_infer,
    .from_types = shape_from_types,
    .bind = bind_known,
};

/* ---- Size ---- */

static bool size_infer(OpCtx *c) {
    c->out[0] = type_tensor(ELEM_INT64, 0, NULL);
    return true;
}

static const Tensor *size_from_types(const OpCtx *c) {
    Type x = op_type(c, 0);
    size_t count;
    if (x.kind != TYPE_TENSOR || !type_count(x, &count))
        return NULL;
    int64_t n = (int64_t)count;
    return tensor_of(c->arena, ELEM_INT64, 0, NULL, arena_copy(c->arena, &n, sizeof n));
}

const OpDef op_Size = {
    .domain = "",
    .name = "Size",
    .infer = size_infer,
    .from_types = size_from_types,
    .bind = bind_known,
};
