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

/* Values lie in [lo, 1]: the whole storage range goes to it. */
static bool span(ElemType storage, int lo, float *scale, int64_t *zp) {
    int bits = elem_bits(storage);
    if (bits != 8 && bits != 16)
        return false;
    *scale = ldexpf((float)(1 - lo), -bits);
    *zp = lo == 0 ? elem_min(storage) : (elem_min(storage) + elem_max(storage) + 1) / 2;
    return true;
}

static bool sigmoid_output(const OpCtx *c, ElemType storage, float *scale, int64_t *zp) {
    (void)c;
    return span(storage, 0, scale, zp);
}

static bool tanh_output(const OpCtx *c, ElemType storage, float *scale, int64_t *zp) {
    (void)c;
    return span(storage, -1, scale, zp);
}

static bool sigmoid_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    qk_sigmoid_f32_params p = {.n = bind_count(n->in[0])};
    return bind_unary(b, n, "qk_sigmoid_f32", &p, sizeof p, sigmoid, NULL);
}

static bool tanh_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    qk_tanh_f32_params p = {.n = bind_count(n->in[0])};
    return bind_unary(b, n, "qk_tanh_f32", &p, sizeof p, tanh_of, NULL);
}

const OpDef op_Sigmoid = {
    .domain = "",
    .name = "Sigmoid",
    .infer = op_same_type,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .widest = 8, .fixed_output = sigmoid_output},
    .qop = {.domain = "com.microsoft", .op = "QLinearSigmoid", .operands = "0* y", .since = 10},
    .bind = sigmoid_bind,
};

const OpDef op_Tanh = {
    .domain = "",
    .name = "Tanh",
    .infer = op_same_type,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .widest = 8, .fixed_output = tanh_output},
    .bind = tanh_bind,
};
