/* Activations with parameters: Celu, Elu, HardSigmoid, Selu, Shrink, ThresholdedRelu. Only types
 * changed between opsets (22). On 8-bit integers they are tables. */
#include "ir/ops/bind.h"

#define ACTIVATION(S) .domain = "", .attrs_size = sizeof(S), CURVE_ROW

/* ---- Elu, Selu, Celu: one formula ---- */

typedef struct EluAttrs {
    float alpha, gamma;
} EluAttrs;

/* See kernels/pointwise/elu_f32.qk. */
static bool bind_exponential(Binder *b, const Node *n, float alpha, float gamma, float sharpness) {
    qk_elu_f32_params p = {bind_count(n->in[0]), alpha, gamma, sharpness};
    return bind_unary(b, n, "qk_elu_f32", &p, sizeof p);
}

static const AttrSpec elu_attrs[] = {
    A_FLOAT(EluAttrs, alpha, 1.0f),
    A_END,
};

static bool elu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    return bind_exponential(b, n, a->alpha, 1, 1);
}

const OpDef op_Elu = {ACTIVATION(EluAttrs), .name = "Elu", .attrs = elu_attrs, .bind = elu_bind};

static const AttrSpec selu_attrs[] = {
    A_FLOAT(EluAttrs, alpha, 1.67326319217681884765625f),
    A_FLOAT(EluAttrs, gamma, 1.05070102214813232421875f),
    A_END,
};

static bool selu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    return bind_exponential(b, n, a->alpha, a->gamma, 1);
}

const OpDef op_Selu = {ACTIVATION(EluAttrs), .name = "Selu", .attrs = selu_attrs,
                       .bind = selu_bind};

static bool celu_verify(const OpCtx *c) {
    return ((const EluAttrs *)c->attrs)->alpha != 0 ||
           op_error_attr(c, "alpha", "alpha must not be 0");
}

static bool celu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    return bind_exponential(b, n, a->alpha, 1, a->alpha);
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

static bool hard_sigmoid_bind(Binder *b, const Node *n, const OpCtx *c) {
    const HardSigmoidAttrs *a = c->attrs;
    qk_hardsigmoid_f32_params p = {bind_count(n->in[0]), a->alpha, a->beta};
    return bind_unary(b, n, "qk_hardsigmoid_f32", &p, sizeof p);
}

const OpDef op_HardSigmoid = {ACTIVATION(HardSigmoidAttrs), .name = "HardSigmoid",
                              .attrs = hard_sigmoid_attrs, .bind = hard_sigmoid_bind,
                              .quant.most = 1};

/* ---- ThresholdedRelu ---- */

static bool thresholded_bind(Binder *b, const Node *n, const OpCtx *c) {
    const EluAttrs *a = c->attrs;
    qk_thresholdedrelu_f32_params p = {bind_count(n->in[0]), a->alpha};
    return bind_unary(b, n, "qk_thresholdedrelu_f32", &p, sizeof p);
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

static bool shrink_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ShrinkAttrs *a = c->attrs;
    if (elem_is_int(n->in[0]->type.elem) && !bind_any_quant(n))
        return bind_integers_in_double(b, n, 1);
    qk_shrink_f32_params p = {bind_count(n->in[0]), a->bias, a->lambd};
    return bind_unary(b, n, "qk_shrink_f32", &p, sizeof p);
}

const OpDef op_Shrink = {ACTIVATION(ShrinkAttrs), .name = "Shrink", .attrs = shrink_attrs,
                         .bind = shrink_bind};
