/* ArgMax and ArgMin. 11 allowed negative axes, 12 added select_last_index. */
#include "ir/ops/bind.h"

enum { DATA };

typedef struct ArgAttrs {
    int64_t axis, keepdims, select_last_index;
} ArgAttrs;

static const AttrSpec arg_attrs[] = {
    A_INT(ArgAttrs, axis, 0),
    A_FLAG(ArgAttrs, keepdims, 1),
    A_FLAG(ArgAttrs, select_last_index, 0),
    A_END,
};

static bool arg_infer(OpCtx *c) {
    const ArgAttrs *a = c->attrs;
    Type x = op_type(c, DATA);
    int axis, rank = 0;
    if (x.rank < 0) {
        c->out[0] = type_tensor(ELEM_INT64, -1, NULL);
        return true;
    }
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        if (i != axis || a->keepdims)
            dims[rank++] = i == axis ? dim_of(1) : x.dims[i];
    c->out[0] = type_tensor(ELEM_INT64, rank, dims);
    return true;
}

static bool ranks(const OpCtx *c, int *axis) {
    const ArgAttrs *a = c->attrs;
    return op_type(c, DATA).rank > 0 && op_axis(c, a->axis, op_type(c, DATA).rank, axis);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const ArgAttrs *a = c->attrs;
    int along;
    (void)i;
    (void)result;
    if (!ranks(c, &along) || axis == along)
        return -1;
    return axis - (axis > along && !a->keepdims);
}

static bool bind_arg(Binder *b, const Node *n, const OpCtx *c, bool least) {
    const ArgAttrs *a = c->attrs;
    Type x = n->in[DATA]->type;
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    ElemType e = bind_elem(n->in[DATA]);
    qk_argmax_params p = {.outer = bind_extent(x, 0, axis),
                          .n = (int32_t)x.dims[axis].value,
                          .inner = bind_extent(x, axis + 1, x.rank),
                          .least = least,
                          .last = a->select_last_index != 0};
    if (p.n == 0)
        return bind_unsupported(b, n, "the axis is empty");
    return bind_first(b, n, bind_kernel(b, "argmax", 1, &e), &p, sizeof p);
}

static bool argmax_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_arg(b, n, c, false);
}

static bool argmin_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_arg(b, n, c, true);
}

#define ARG                                                                                        \
    .domain = "", .attrs_size = sizeof(ArgAttrs), .attrs = arg_attrs, .infer = arg_infer,          \
    .ranks = ranks, .slices = slices

const OpDef op_ArgMax = {ARG, .name = "ArgMax", .ranks_largest = true, .bind = argmax_bind};
const OpDef op_ArgMin = {ARG, .name = "ArgMin", .bind = argmin_bind};
