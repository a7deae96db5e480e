/* OneHot: 11 made indices wrap around. */
#include "ir/ops/bind.h"

enum { INDICES, DEPTH, VALUES };

typedef struct OneHotAttrs {
    int64_t axis;
} OneHotAttrs;

static const AttrSpec attrs[] = {
    A_INT(OneHotAttrs, axis, -1),
    A_END,
};

static bool infer(OpCtx *c) {
    const OneHotAttrs *a = c->attrs;
    Type i = op_type(c, INDICES), v = op_type(c, VALUES);
    const Tensor *depth = op_const(c, DEPTH);
    int axis;
    if (v.kind != TYPE_TENSOR)
        return true;
    if (i.rank < 0 || i.rank >= MAX_RANK) {
        c->out[0] = type_tensor(type_real_elem(v), -1, NULL);
        return true;
    }
    if (v.rank >= 0 && (v.rank != 1 || (v.dims[0].value >= 0 && v.dims[0].value != 2)))
        return op_error_in(c, VALUES, "%s is not off and on", type_text(c->arena, v));
    if (i.rank == 0)
        return op_error_in(c, INDICES, "indices have one dimension or more");
    if (!op_axis(c, a->axis, i.rank + 1, &axis))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)i.rank + 1);
    for (int k = 0; k < i.rank; k++)
        dims[k + (k >= axis)] = i.dims[k];
    bool known = depth && depth->data && depth->count == 1;
    double n = known ? tensor_float(depth, 0) : -1;
    if (known && !(n >= 1 && n <= INT32_MAX))
        return op_error_in(c, DEPTH, "the depth is %g", n);
    dims[axis] = known ? dim_of((int64_t)n) : dim_unknown();
    c->out[0] = type_tensor(type_real_elem(v), i.rank + 1, dims);
    return true;
}

static bool fits_kernel(const Node *n) {
    const Quant *x = op_quant(n->in[VALUES]), *y = op_quant(n->out[0]);
    return (!x && !y) || (quant_plain(x) && quant_plain(y));
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const OneHotAttrs *a = c->attrs;
    Type y = n->out[0]->type;
    ElemType types[] = {bind_elem(n->out[0]), bind_elem(n->in[INDICES])};
    int axis;
    bool ok = true;
    if (!fits_kernel(n))
        return bind_in_double(b, n);
    if (!op_axis(c, a->axis, y.rank, &axis))
        return false;
    qk_onehot_params p = {.outer = bind_extent(y, 0, axis),
                          .depth = (int32_t)y.dims[axis].value,
                          .inner = bind_extent(y, axis + 1, y.rank)};
    if (bind_count(n->in[VALUES]) != 2)
        return bind_unsupported(b, n, "it has %d values, not off and on",
                                bind_count(n->in[VALUES]));
    int args[] = {bind_value(b, n->in[INDICES]), bind_joined(b, n, n->in[VALUES], &ok),
                  bind_value(b, n->out[0])};
    return ok && bind_call(b, n, bind_kernel(b, "onehot", 2, types), &p, sizeof p, 3, args);
}

static bool bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    ElemType e = bind_elem(n->in[DEPTH]);
    (void)c;
    qk_length_in_params p = {.most = INT32_MAX, .least = 1};
    return bind_call(b, n, bind_kernel(b, "length_in", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[DEPTH]), length});
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const OneHotAttrs *a = c->attrs;
    int at;
    (void)result;
    return i == INDICES && op_axis(c, a->axis, op_type(c, i).rank + 1, &at) ? axis + (axis >= at)
                                                                            : -1;
}

const OpDef op_OneHot = {
    .domain = "",
    .name = "OneHot",
    .fixed = 1u << DEPTH,
    .attrs_size = sizeof(OneHotAttrs),
    .attrs = attrs,
    .infer = infer,
    .slices = slices,
    .quant = {.kind = QUANT_JOIN, .data = 1u << VALUES, .prefers_float = GAINS_NOTHING},
    .bind_length = bind_length,
    .bind = bind,
};
