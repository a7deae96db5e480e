/* MultiThreshold of QONNX and FINN: out_scale * (how many thresholds the number reaches) +
 * out_bias. Thresholds are a row for each channel, or one row for all. The channels of 4 dimensions
 * stand where data_layout says, of 2 in the second, of any other number in the last. `out_dtype`
 * only says which integers the results are. */
#include "ir/ops/multithreshold.h"

#include "ir/ops/bind.h"

enum { X, T };

typedef struct ThresholdAttrs {
    Str out_dtype, data_layout;
    float out_scale, out_bias;
} ThresholdAttrs;

static const AttrSpec attrs[] = {
    A_STR(ThresholdAttrs, out_dtype, ""),
    A_STR(ThresholdAttrs, data_layout, "NCHW"),
    A_FLOAT(ThresholdAttrs, out_scale, 1.0f),
    A_FLOAT(ThresholdAttrs, out_bias, 0.0f),
    A_END,
};

static int channel_axis(const ThresholdAttrs *a, int rank) {
    return rank == 4 && !str_is(a->data_layout, "NHWC") ? 1 : rank - 1;
}

int multithreshold_axis(const Node *n) {
    return channel_axis(n->typed, n->in[X]->type.rank);
}

static bool verify(const OpCtx *c) {
    const ThresholdAttrs *a = c->attrs;
    Type x = op_type(c, X), t = op_type(c, T);
    if (c->n_in != 2 || c->n_out != 1 || !op_in(c, X) || !op_in(c, T))
        return op_error(c, "takes numbers and thresholds and has one result");
    if (!str_is(a->data_layout, "NCHW") && !str_is(a->data_layout, "NHWC"))
        return op_error_attr(c, "data_layout", "data_layout is '%s', must be 'NCHW' or 'NHWC'",
                             diag_name(c->d, a->data_layout));
    if (t.rank >= 0 && t.rank != 2)
        return op_error_in(c, T, "has rank %d, must have 2: channels and thresholds", t.rank);
    if (x.rank < 0 || t.rank < 0)
        return true;
    if (x.rank < 2)
        return op_error_in(c, X, "has rank %d, must have 2 or more", x.rank);
    int64_t rows = t.dims[0].value, channels = x.dims[channel_axis(a, x.rank)].value;
    return rows < 0 || rows == 1 || channels < 0 || rows == channels ||
           op_error_in(c, T, "has %lld rows for %lld channels", (long long)rows,
                       (long long)channels);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ThresholdAttrs *a = c->attrs;
    Type x = n->in[X]->type, t = n->in[T]->type;
    for (size_t i = X; i <= T; i++)
        if (n->in[i]->type.elem != ELEM_FLOAT || op_quant(n->in[i]))
            return bind_unsupported(b, n, "operand %zu is not float", i);
    int axis = channel_axis(a, x.rank);
    bool one = t.dims[0].value == 1;
    qk_multithreshold_f32_params p = {.outer = one ? 1 : bind_extent(x, 0, axis),
                                      .channels = (int32_t)t.dims[0].value,
                                      .inner = one ? (int32_t)bind_count(n->in[X])
                                                   : bind_extent(x, axis + 1, x.rank),
                                      .n = (int32_t)t.dims[1].value};
    float *table = NEW_ARRAY(binder_arena(b), float, (size_t)p.n + 1);
    for (int32_t i = 0; i <= p.n; i++)
        table[i] = (float)((double)a->out_scale * i + (double)a->out_bias);
    int results = bind_const(b, ELEM_FLOAT, (size_t)p.n + 1, table, "results");
    if (!bind_call(b, n, "qk_multithreshold_f32", &p, sizeof p, 4,
                   (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[T]), results,
                           bind_value(b, n->out[0])}))
        return false;
    bind_in_place(b, 0);
    return true;
}

const OpDef op_MultiThreshold = {
    .domain = "qonnx.custom_op.general",
    .name = "MultiThreshold",
    .attrs_size = sizeof(ThresholdAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .slices = op_slices_each,
    .bind = bind,
};
