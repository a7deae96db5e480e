/* Sigmoid and Tanh, with QLinearSigmoid. Opset 13: only types. On 8-bit integers both are tables.
 */
#include "ir/ops/bind.h"

#include <math.h>

static float sigmoid(float x, const void *ctx) {
    (void)ctx;
    return (float)(1 / (1 + exp(-(double)x)));
}

static float tanh_of(float x, const void *ctx) {
    (void)ctx;
    return (float)tanh((double)x);
}

static bool sigmoid_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    qk_unary_params p = {.n = bind_count(n->in[0])};
    return bind_unary(b, n, "qk_unary_sigmoid_f32", &p, sizeof p, sigmoid, NULL);
}

static bool tanh_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    qk_unary_params p = {.n = bind_count(n->in[0])};
    return bind_unary(b, n, "qk_unary_tanh_f32", &p, sizeof p, tanh_of, NULL);
}

const OpDef op_Sigmoid = {
    .domain = "",
    .name = "Sigmoid",
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .curve = true},
    .qop = {.domain = "com.microsoft", .op = "QLinearSigmoid", .operands = "0* y", .since = 10},
    .bind = sigmoid_bind,
};

const OpDef op_Tanh = {
    .domain = "",
    .name = "Tanh",
    .infer = op_same_type,
    .slices = op_slices_each,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .curve = true},
    .bind = tanh_bind,
};
