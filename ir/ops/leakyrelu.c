/* LeakyRelu and QLinearLeakyRelu. Opset 16: only types. On 8-bit integers a table. */
#include "ir/ops/bind.h"

typedef struct LeakyReluAttrs {
    float alpha;
} LeakyReluAttrs;

static const AttrSpec attrs[] = {
    A_FLOAT(LeakyReluAttrs, alpha, 0.01f),
    A_END,
};

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const LeakyReluAttrs *a = c->attrs;
    qk_leakyrelu_f32_params p = {.n = bind_count(n->in[0]), .alpha = a->alpha};
    return bind_unary(b, n, "qk_leakyrelu_f32", &p, sizeof p);
}

const OpDef op_LeakyRelu = {
    .domain = "",
    .name = "LeakyRelu",
    .attrs_size = sizeof(LeakyReluAttrs),
    .attrs = attrs,
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .scaled.homogeneous = true, .curve = true},
    .qop = {.domain = "com.microsoft", .op = "QLinearLeakyRelu", .operands = "0* y", .since = 10},
    .bind = bind,
};
