/* LayerNormalization, RMSNormalization, onnxruntime's SimplifiedLayerNormalization, and
 * InstanceNormalization: rows are brought to mean 0 and variance 1, then scaled and shifted. */
#include "ir/ops/layernorm.h"

enum { X = NORM_X, SCALE = NORM_SCALE, BIAS = NORM_BIAS };

/* ---- shared binding ---- */

static bool bind_stats(Binder *b, const Node *n, NormRows r, float eps, int x, bool centre,
                       bool spread, int to) {
    qk_rowstats_f32_params p = {r.rows, r.n, centre, spread, eps};
    return bind_call(b, n, "qk_rowstats_f32", &p, sizeof p, 2, (int[]){x, to});
}

bool norm_bind_rows(Binder *b, const Node *n, NormRows r, float eps, bool centre, const int args[4],
                    const int stats[2]) {
    int x = args[0], scale = args[1], bias = args[2], y = args[3];
    int mean = stats[0] >= 0 ? stats[0] : centre ? bind_temp(b, ELEM_FLOAT, (size_t)r.rows) : -1;
    int spread = stats[1] >= 0 ? stats[1] : bind_temp(b, ELEM_FLOAT, (size_t)r.rows);
    qk_normalize_f32_params p = {r.rows, r.n, r.period, r.step, r.block, centre, bias >= 0};
    if (r.rows == 0 || r.n == 0)
        return bind_unsupported(b, n, "its operand is empty");
    return (mean < 0 || bind_stats(b, n, r, eps, x, true, false, mean)) &&
           bind_stats(b, n, r, eps, x, centre, true, spread) &&
           bind_call(b, n, "qk_normalize_f32", &p, sizeof p, 6,
                     (int[]){x, mean, spread, scale, bias, y});
}

static const int no_stats[] = {-1, -1};

bool bind_layer_rows(Binder *b, const Node *n, int32_t rows, int32_t width, float eps, int x,
                     int scale, int bias, int y) {
    NormRows r = {rows, width, 1, 0, 1};
    return norm_bind_rows(b, n, r, eps, true, (int[]){x, scale, bias, y}, no_stats);
}

static bool has_count(const Value *v, int64_t count) {
    return !v || bind_count(v) == count;
}

bool norm_check_count(const OpCtx *c, size_t i, int64_t want) {
    Type t = op_type(c, i);
    if (t.rank < 0 || want < 0 || (t.rank == 1 && (t.dims[0].value < 0 || t.dims[0].value == want)))
        return true;
    return op_error_in(c, i, "operand %zu is %s, must have shape [%lld]", i, type_text(c->arena, t),
                       (long long)want);
}

/* ---- LayerNormalization, RMSNormalization ---- */

static const AttrSpec layer_attrs[] = {
    A_INT(NormAttrs, axis, -1),
    A_FLOAT(NormAttrs, epsilon, 1e-5f),
    A_INT(NormAttrs, stash_type, 1),
    A_END,
};

static bool layer_infer(OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = op_type(c, X);
    int axis;
    if (x.rank < 0)
        return op_same_type(c);
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    for (size_t i = 1; i < c->n_out; i++) {
        Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
        for (int k = axis; k < x.rank; k++)
            dims[k] = dim_of(1);
        c->out[i] = type_tensor(ELEM_FLOAT, x.rank, dims);
    }
    return op_same_type(c);
}

static bool bind_layer(Binder *b, const Node *n, const OpCtx *c, bool centre) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    const Value *bias = op_in(c, BIAS);
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    NormRows r = {bind_extent(x, 0, axis), bind_extent(x, axis, x.rank), 1, 0, 1};
    bool one = bind_count(n->in[SCALE]) == 1 && has_count(bias, 1);
    r.block = one ? r.n : 1;
    if (!one && (!has_count(n->in[SCALE], r.n) || !has_count(bias, r.n)))
        return bind_unsupported(b, n, "its scale or bias broadcasts");
    if (bind_any_quant(n))
        return bind_norm_integers(b, n, c, &r, a->epsilon, centre);
    if (!bind_floats_only(b, n))
        return false;
    int stats[2] = {-1, -1};
    for (size_t i = 1; i < n->n_out && i < 3; i++)
        stats[centre ? i - 1 : 1] = bind_value(b, n->out[i]);
    int args[] = {bind_value(b, n->in[X]), bind_value(b, n->in[SCALE]), bind_value(b, bias),
                  bind_value(b, n->out[0])};
    return norm_bind_rows(b, n, r, a->epsilon, centre, args, stats);
}

static bool layer_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_layer(b, n, c, true);
}

static bool rms_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_layer(b, n, c, false);
}

static int layer_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const NormAttrs *a = c->attrs;
    int from;
    (void)result;
    return i == X && op_axis(c, a->axis, op_type(c, X).rank, &from) && axis < from ? axis : -1;
}
const OpDef op_LayerNormalization = {
    .domain = "",
    .name = "LayerNormalization",
    .since_in_onnx = 17,
    .attrs_size = sizeof(NormAttrs),
    .attrs = layer_attrs,
    .infer = layer_infer,
    .slices = layer_slices,
    NORM_QUANT(1U << SCALE | 1U << BIAS),
    .bind = layer_bind,
};

const OpDef op_RMSNormalization = {
    .domain = "",
    .name = "RMSNormalization",
    .composite = true,
    .attrs_size = sizeof(NormAttrs),
    .attrs = layer_attrs,
    .infer = layer_infer,
    .slices = layer_slices,
    NORM_QUANT(1U << SCALE),
    .bind = rms_bind,
};

/* RMSNormalization as onnxruntime's optimizer writes it, with 1 / deviation beside its result. */
const OpDef op_SimplifiedLayerNormalization = {
    .domain = "",
    .name = "SimplifiedLayerNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = layer_attrs,
    .infer = layer_infer,
    .slices = layer_slices,
    NORM_QUANT(1U << SCALE),
    .bind = rms_bind,
};

/* ---- InstanceNormalization ---- */

static const AttrSpec instance_attrs[] = {
    A_FLOAT(NormAttrs, epsilon, 1e-5f),
    A_END,
};

static bool instance_verify(const OpCtx *c) {
    Type x = op_type(c, X);
    if (x.rank < 0)
        return true;
    if (x.rank < 3)
        return op_error_in(c, X, "input must have rank 3 or more, not %d", x.rank);
    return norm_check_count(c, SCALE, x.dims[1].value) &&
           norm_check_count(c, BIAS, x.dims[1].value);
}

bool norm_bind_channels(Binder *b, const Node *n, const OpCtx *c, const NormRows *r, float eps) {
    if (bind_any_quant(n))
        return bind_norm_integers(b, n, c, r, eps, true);
    if (!bind_floats_only(b, n))
        return false;
    int args[] = {bind_value(b, n->in[X]), bind_value(b, n->in[SCALE]), bind_value(b, n->in[BIAS]),
                  bind_value(b, n->out[0])};
    return norm_bind_rows(b, n, *r, eps, true, args, no_stats);
}

static bool instance_bind(Binder *b, const Node *n, const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    int32_t size = bind_extent(x, 2, x.rank);
    NormRows r = {bind_extent(x, 0, 2), size, (int32_t)x.dims[1].value, 1, size};
    return norm_bind_channels(b, n, c, &r, a->epsilon);
}

const OpDef op_InstanceNormalization = {
    .domain = "",
    .name = "InstanceNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = instance_attrs,
    .verify = instance_verify,
    .infer = op_same_type,
    .slices = op_slices_first,
    NORM_QUANT(0),
    .bind = instance_bind,
};
