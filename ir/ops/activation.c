/* Activations with parameters: Celu, Elu, HardSigmoid, Selu, Shrink, ThresholdedRelu. Only types
 * changed between opsets (22). On 8-bit integers they are tables. */
#include "ir/ops/bind.h"

#include <math.h>

#define ACTIVATION(S)                                                                              \
    .domain = "", .attrs_size = sizeof(S), .infer = op_same_type, .slices = op_slices_each,        \
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .curve = true}

/* ---- Elu, Selu, Celu: one formula ---- */

typedef struct EluAttrs {
    float alpha, gamma;
} EluAttrs;

/* gamma * (x > 0 ? x : alpha * (exp(x / sharpness) - 1)) */
typedef struct Exponential {
    float alpha, gamma, sharpness;
} Exponential;

static float exponential(float x, const void *ctx) {
    const Exponential *e = ctx;
    double v = (double)x;
    return (float)((double)e->gamma *
                   (x > 0 ? v : (double)e->alpha * expm1(v / (double)e->sharpness)));
}

static bool bind_exponential(Binder *b, const Node *n, Exponential e) {
    qk_elu_f32_params p = {bind_count(n->in[0]), e.alpha, e.gamma, e.sharpness};
    return bind_unary(b, n, "qk_elu_f32", &p, sizeof p, exponential, &e);
}

static const AttrSpec elu_attrs[] = {
    A_FLOAT(EluAttrs, alpha, 1.0f),
    A_END,
};

static bool elu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    return bind_exponential(b, n, (Exponential){a->alpha, 1, 1});
}

const OpDef op_Elu = {ACTIVATION(EluAttrs), .name = "Elu", .attrs = elu_attrs, .bind = elu_bind};

static const AttrSpec selu_attrs[] = {
    A_FLOAT(EluAttrs, alpha, 1.67326319217681884765625f),
    A_FLOAT(EluAttrs, gamma, 1.05070102214813232421875f),
    A_END,
};

static bool selu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    return bind_exponential(b, n, (Exponential){a->alpha, a->gamma, 1});
}

const OpDef op_Selu = {ACTIVATION(EluAttrs), .name = "Selu", .attrs = selu_attrs,
                       .bind = selu_bind};

static bool celu_verify(const OpCtx *c) {
    return ((const EluAttrs *)c->attrs)->alpha != 0 ||
           op_error_attr(c, "alpha", "alpha must not be 0");
}

static bool celu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    return bind_exponential(b, n, (Exponential){a->alpha, 1, a->alpha});
}

const OpDef op_Celu = {ACTIVATION(EluAttrs), .name = "Celu", .attrs = elu_attrs,
                       .verify = celu_verify, .bind = celu_bind};

/* ---- HardSigmoid ---- */

typedef struct HardSigmoidAttrs {
    float alpha, beta;
} HardSigmoidAttrs;

static const AttrSpec hard_sigmoid_attrs[] = {
    A_FLOAT(HardSigmoidAttrs, alpha, 0.2f),
    A_FLOAT(HardSigmoidAttrs, beta, 0.5f),
    A_END,
};

static float hard_sigmoid(float x, const void *ctx) {
    const HardSigmoidAttrs *a = ctx;
    float v = a->alpha * x + a->beta;
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static bool hard_sigmoid_bind(Binder *b, const Node *n, const OpCtx *c) {
    const HardSigmoidAttrs *a = c->attrs;
    qk_hardsigmoid_f32_params p = {bind_count(n->in[0]), a->alpha, a->beta};
    return bind_unary(b, n, "qk_hardsigmoid_f32", &p, sizeof p, hard_sigmoid, a);
}

const OpDef op_HardSigmoid = {ACTIVATION(HardSigmoidAttrs), .name = "HardSigmoid",
                              .attrs = hard_sigmoid_attrs, .bind = hard_sigmoid_bind};

/* ---- ThresholdedRelu ---- */

static float thresholded(float x, const void *ctx) {
    return x > ((const EluAttrs *)ctx)->alpha ? x : 0;
}

static bool thresholded_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    qk_thresholdedrelu_f32_params p = {bind_count(n->in[0]), a->alpha};
    return bind_unary(b, n, "qk_thresholdedrelu_f32", &p, sizeof p, thresholded, a);
}

const OpDef op_ThresholdedRelu = {ACTIVATION(EluAttrs), .name = "ThresholdedRelu",
                                  .attrs = elu_attrs, .bind = thresholded_bind};

/* ---- Shrink ---- */

typedef struct ShrinkAttrs {
    float bias, lambd;
} ShrinkAttrs;

static const AttrSpec shrink_attrs[] = {
    A_FLOAT(ShrinkAttrs, bias, 0.0f),
    A_FLOAT(ShrinkAttrs, lambd, 0.5f),
    A_END,
};

static float shrink(float x, const void *ctx) {
    const ShrinkAttrs *a = ctx;
    return x < -a->lambd ? x + a->bias : x > a->lambd ? x - a->bias : 0;
}

static bool shrink_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ShrinkAttrs *a = c->attrs;
    qk_shrink_f32_params p = {bind_count(n->in[0]), a->bias, a->lambd};
    return bind_unary(b, n, "qk_shrink_f32", &p, sizeof p, shrink, a);
}

const OpDef op_Shrink = {ACTIVATION(ShrinkAttrs), .name = "Shrink", .attrs = shrink_attrs,
                         .bind = shrink_bind};
