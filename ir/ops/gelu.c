/* Gelu (opset 20) and com.microsoft's forms of it: Gelu, QuickGelu, and BiasGelu and FastGelu,
 * which add a bias first. On 8-bit integers Gelu and QuickGelu are tables. */
#include "ir/ops/bind.h"

typedef struct GeluAttrs {
    Str approximate;
} GeluAttrs;

static const AttrSpec gelu_attrs[] = {
    A_WORD(GeluAttrs, approximate, "none", "none tanh"),
    A_END,
};

static bool bind_exact(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    qk_unary_params p = {.n = bind_count(n->in[0])};
    return bind_unary(b, n, "qk_unary_gelu_f32", &p, sizeof p);
}

static bool gelu_bind(Binder *b, const Node *n, const OpCtx *c) {
    const GeluAttrs *a = c->attrs;
    if (!str_is(a->approximate, "tanh"))
        return bind_exact(b, n, c);
    qk_unary_params p = {.n = bind_count(n->in[0])};
    return bind_unary(b, n, "qk_unary_gelu_tanh_f32", &p, sizeof p);
}

const OpDef op_Gelu = {
    .domain = "",
    .name = "Gelu",
    .composite = true,
    .attrs_size = sizeof(GeluAttrs),
    .attrs = gelu_attrs,
    CURVE_ROW,
    .bind = gelu_bind,
};

/* ---- com.microsoft ---- */

const OpDef op_MsGelu = {
    .domain = "com.microsoft",
    .name = "Gelu",
    CURVE_ROW,
    .bind = bind_exact,
};

typedef struct QuickGeluAttrs {
    float alpha;
} QuickGeluAttrs;

static const AttrSpec quick_attrs[] = {
    A_FLOAT(QuickGeluAttrs, alpha, 1.702f),
    A_END,
};

static bool quick_bind(Binder *b, const Node *n, const OpCtx *c) {
    const QuickGeluAttrs *a = c->attrs;
    qk_quickgelu_f32_params p = {bind_count(n->in[0]), a->alpha};
    return bind_unary(b, n, "qk_quickgelu_f32", &p, sizeof p);
}

/* Swish of opset 24 is the same with another default. */
static const AttrSpec swish_attrs[] = {
    A_FLOAT(QuickGeluAttrs, alpha, 1.0f),
    A_END,
};

const OpDef op_Swish = {
    .domain = "",
    .name = "Swish",
    .composite = true,
    .attrs_size = sizeof(QuickGeluAttrs),
    .attrs = swish_attrs,
    CURVE_ROW,
    .bind = quick_bind,
};

const OpDef op_QuickGelu = {
    .domain = "com.microsoft",
    .name = "QuickGelu",
    .attrs_size = sizeof(QuickGeluAttrs),
    .attrs = quick_attrs,
    CURVE_ROW,
    .bind = quick_bind,
};

/* x + bias into the result, where the kernel then works in place. */
static bool bind_biased(Binder *b, const Node *n, const char *kernel) {
    int x = bind_value(b, n->in[0]), y = bind_value(b, n->out[0]);
    if (!bind_floats_only(b, n))
        return false;
    if (node_input(n, 1)) {
        Broadcast s = bind_broadcast(n->in[0]->type, n->in[1]->type, n->out[0]->type);
        int sum = bind_temp(b, ELEM_FLOAT, (size_t)bind_count(n->out[0]));
        if (!bind_binary(b, n, "add", ELEM_FLOAT, s, (int[]){x, bind_value(b, n->in[1]), sum}))
            return false;
        bind_in_place(b, 0);
        x = sum;
    }
    qk_unary_params p = {.n = bind_count(n->out[0])};
    if (!bind_call(b, n, kernel, &p, sizeof p, 2, (int[]){x, y}))
        return false;
    bind_in_place(b, 0);
    return true;
}

static bool bias_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_biased(b, n, "qk_unary_gelu_f32");
}

static bool fast_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_biased(b, n, "qk_unary_gelu_tanh_f32");
}

/* The bias is one number for each index of the last axis. */
static bool bias_verify(const OpCtx *c) {
    Type x = op_type(c, 0), bias = op_type(c, 1);
    if (x.rank < 1 || bias.rank < 0)
        return x.rank != 0 || op_error_in(c, 0, "the input is a scalar");
    int64_t last = x.dims[x.rank - 1].value;
    if (bias.rank != 1 || (dim_differ(last, bias.dims[0].value)))
        return op_error_in(c, 1, "the bias is %s, must have shape [%lld]",
                           type_text(c->arena, bias), (long long)last);
    return true;
}

const OpDef op_BiasGelu = {
    .domain = "com.microsoft",
    .name = "BiasGelu",
    .verify = bias_verify,
    .infer = op_same_type,
    .slices = op_slices_each,
    .bind = bias_bind,
};

const OpDef op_FastGelu = {
    .domain = "com.microsoft",
    .name = "FastGelu",
    .verify = bias_verify,
    .infer = op_same_type,
    .slices = op_slices_each,
    .bind = fast_bind,
};
