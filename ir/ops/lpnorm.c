/* LpNormalization: divides by the norm along an axis. Only types changed between opsets. */
#include "ir/ops/bind.h"

typedef struct LpAttrs {
    int64_t axis, p;
} LpAttrs;

static const AttrSpec attrs[] = {
    A_INT(LpAttrs, axis, -1),
    A_INT(LpAttrs, p, 2),
    A_END,
};

static bool verify(const OpCtx *c) {
    const LpAttrs *a = c->attrs;
    return a->p == 1 || a->p == 2 ||
           op_error_attr(c, "p", "p must be 1 or 2, not %lld", (long long)a->p);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const LpAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    int axis;
    if (!bind_floats_only(b, n) || !op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_lpnorm_f32_params p = {.outer = bind_extent(x, 0, axis),
                              .n = (int32_t)x.dims[axis].value,
                              .inner = bind_extent(x, axis + 1, x.rank),
                              .p = (int32_t)a->p};
    return bind_call(b, n, "qk_lpnorm_f32", &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])});
}

const OpDef op_LpNormalization = {
    .domain = "",
    .name = "LpNormalization",
    .attrs_size = sizeof(LpAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .bind = bind,
};
