/* IsInf and IsNaN. Only types changed between opsets. */
#include "ir/ops/bind.h"

typedef struct IsInfAttrs {
    int64_t detect_negative, detect_positive;
} IsInfAttrs;

static const AttrSpec attrs[] = {
    A_INT(IsInfAttrs, detect_negative, 1),
    A_INT(IsInfAttrs, detect_positive, 1),
    A_END,
};

static bool infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(ELEM_BOOL, x.rank, x.dims);
    return true;
}

static bool call(Binder *b, const Node *n, qk_isinf_f32_params p) {
    p.n = bind_count(n->in[0]);
    return bind_floats_only(b, n) && bind_first(b, n, "qk_isinf_f32", &p, sizeof p);
}

static bool isinf_bind(Binder *b, const Node *n, const OpCtx *c) {
    const IsInfAttrs *a = c->attrs;
    return call(b, n,
                (qk_isinf_f32_params){.positive = a->detect_positive != 0,
                                      .negative = a->detect_negative != 0});
}

static bool isnan_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return call(b, n, (qk_isinf_f32_params){.nan = 1});
}

const OpDef op_IsInf = {
    .domain = "",
    .name = "IsInf",
    .attrs_size = sizeof(IsInfAttrs),
    .attrs = attrs,
    .infer = infer,
    .slices = op_slices_each,
    .bind = isinf_bind,
};

const OpDef op_IsNaN = {
    .domain = "", .name = "IsNaN", .infer = infer, .slices = op_slices_each, .bind = isnan_bind};
