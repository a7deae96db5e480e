/* CumSum and CumProd: running sums and products along an axis. Only types changed between opsets.
 */
#include "ir/ops/bind.h"

enum { X, AXIS };

typedef struct CumAttrs {
    int64_t exclusive, reverse;
} CumAttrs;

static const AttrSpec attrs[] = {
    A_FLAG(CumAttrs, exclusive, 0),
    A_FLAG(CumAttrs, reverse, 0),
    A_END,
};

static bool cumulate(Binder *b, const Node *n, const OpCtx *c, bool product) {
    const CumAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    ElemType e = bind_elem(n->in[X]);
    Ints list;
    int axis;
    if (!op_ints(c, AXIS, &list) || list.n != 1)
        return bind_unsupported(b, n, "its axis is not constant");
    if (!op_axis(c, list.v[0], x.rank, &axis))
        return false;
    qk_cumulate_params p = {.outer = bind_extent(x, 0, axis),
                            .n = (int32_t)x.dims[axis].value,
                            .inner = bind_extent(x, axis + 1, x.rank),
                            .exclusive = a->exclusive != 0,
                            .reverse = a->reverse != 0,
                            .product = product};
    return bind_first(b, n, bind_kernel(b, "cumulate", 1, &e), &p, sizeof p);
}

static bool sum_bind(Binder *b, const Node *n, const OpCtx *c) {
    return cumulate(b, n, c, false);
}

static bool prod_bind(Binder *b, const Node *n, const OpCtx *c) {
    return cumulate(b, n, c, true);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    Ints list;
    int along;
    (void)result;
    return i == X && op_ints(c, AXIS, &list) && list.n == 1 &&
                   op_axis(c, list.v[0], op_type(c, X).rank, &along) && axis != along
               ? axis
               : -1;
}

#define CUMULATIVE                                                                                 \
    .domain = "", .attrs_size = sizeof(CumAttrs), .attrs = attrs, .infer = op_same_type,           \
    .slices = slices, .fixed = 1u << AXIS

const OpDef op_CumSum = {CUMULATIVE, .name = "CumSum", .bind = sum_bind};
const OpDef op_CumProd = {CUMULATIVE, .name = "CumProd", .bind = prod_bind};
