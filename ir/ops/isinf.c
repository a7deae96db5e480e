/* IsInf and IsNaN. Only types changed between opsets. What integers stand for is finite: of them
 * both are false everywhere. */
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

static bool call_false(Binder *b, const Node *n) {
    qk_fill_params p = {.n = bind_count(n->out[0])};
    ElemType e = bind_elem(n->out[0]);
    return bind_call(b, n, bind_kernel(b, "fill", 1, &e), &p, sizeof p, 1,
                     (int[]){bind_value(b, n->out[0])});
}

static bool call(Binder *b, const Node *n, qk_isinf_f32_params p) {
    const Quant *q = op_quant(n->in[0]);
    if (q && q->grid == GRID_INTEGERS && q->kind == QUANT_PARAMS)
        return call_false(b, n);
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
    .false_of_integers = true,
    .bind = isinf_bind,
};

const OpDef op_IsNaN = {
    .domain = "",
    .name = "IsNaN",
    .infer = infer,
    .slices = op_slices_each,
    .false_of_integers = true,
    .bind = isnan_bind,
};
