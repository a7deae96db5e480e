/* LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization, onnxruntime's
 * SimplifiedLayerNormalization and com.microsoft's two that add a skip: rows are brought to
 * mean 0 and variance 1, then scaled and shifted. GroupNormalization has one scale a group at opset
 * 18, one a channel from 21; all else are types. Those without a skip have a form on integers
 * (layernorm_integer.c). */
#include "ir/ops/layernorm.h"
#include "ir/provenance.h"

typedef struct NormAttrs {
    int64_t axis, stash_type, num_groups;
    float epsilon;
} NormAttrs;

enum { X = NORM_X, SCALE = NORM_SCALE, BIAS = NORM_BIAS };

/* ---- shared binding ---- */

static bool bind_stats(Binder *b, const Node *n, NormRows r, float eps, int x, bool centre,
                       bool spread, int to) {
    qk_rowstats_f32_params p = {r.rows, r.n, centre, spread, eps};
    return bind_call(b, n, "qk_rowstats_f32", &p, sizeof p, 2, (int[]){x, to});
}

/* `stats`: where mean and 1 / deviation are asked for, else -1. Without `centre` there is no mean.
 */
/* args: the buffers of x, scale, bias (-1 for none) and y. */
static bool bind_rows(Binder *b, const Node *n, NormRows r, float eps, bool centre,
                      const int args[4], const int stats[2]) {
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
    return bind_rows(b, n, r, eps, true, (int[]){x, scale, bias, y}, no_stats);
}

static bool has_count(const Value *v, int64_t count) {
    return !v || bind_count(v) == count;
}

static bool check_count(const OpCtx *c, size_t i, int64_t want) {
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
    return bind_rows(b, n, r, a->epsilon, centre, args, stats);
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

/* The result's largest numbers are several deviations: 8 bits are few, and no runtime has it. */
#define NORM_QUANT(of_scale)                                                                       \
    .quant = {.kind = QUANT_COMPUTE,                                                               \
              .data = 1u << X,                                                                     \
              .prefers_float = SPANS_TOO_MUCH,                                                     \
              .scaled.proportional = (of_scale),                                                   \
              .integer_refusal = norm_refusal}

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
    return check_count(c, SCALE, x.dims[1].value) && check_count(c, BIAS, x.dims[1].value);
}

static bool bind_channels(Binder *b, const Node *n, const OpCtx *c, const NormRows *r, float eps) {
    if (bind_any_quant(n))
        return bind_norm_integers(b, n, c, r, eps, true);
    if (!bind_floats_only(b, n))
        return false;
    int args[] = {bind_value(b, n->in[X]), bind_value(b, n->in[SCALE]), bind_value(b, n->in[BIAS]),
                  bind_value(b, n->out[0])};
    return bind_rows(b, n, *r, eps, true, args, no_stats);
}

static bool instance_bind(Binder *b, const Node *n, const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    int32_t size = bind_extent(x, 2, x.rank);
    NormRows r = {bind_extent(x, 0, 2), size, (int32_t)x.dims[1].value, 1, size};
    return bind_channels(b, n, c, &r, a->epsilon);
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

/* ---- GroupNormalization ---- */

static const AttrSpec group_attrs[] = {
    A_INT_REQUIRED(NormAttrs, num_groups),
    A_FLOAT(NormAttrs, epsilon, 1e-5f),
    A_INT(NormAttrs, stash_type, 1),
    A_END,
};

/* Before opset 21 scale and bias have a number for each group. Exporters give one for each channel,
 * as the operator was corrected to have. */
static bool has_channels(const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = op_type(c, X), s = op_type(c, SCALE);
    bool known = x.rank > 1 && s.rank == 1 && s.dims[0].value >= 0;
    return c->opset >= 21 ||
           (known && s.dims[0].value == x.dims[1].value && s.dims[0].value != a->num_groups);
}

static bool group_verify(const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = op_type(c, X);
    if (!op_number(c, "num_groups", a->num_groups))
        return false;
    if (x.rank < 0)
        return true;
    if (x.rank < 3)
        return op_error_in(c, X, "input must have rank 3 or more, not %d", x.rank);
    int64_t channels = x.dims[1].value, entries = has_channels(c) ? channels : a->num_groups;
    if (channels >= 0 && channels % a->num_groups)
        return op_error_attr(c, "num_groups", "%lld channels do not divide into %lld groups",
                             (long long)channels, (long long)a->num_groups);
    return check_count(c, SCALE, entries) && check_count(c, BIAS, entries);
}

static bool group_bind(Binder *b, const Node *n, const OpCtx *c) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    int32_t groups = (int32_t)a->num_groups, members = (int32_t)x.dims[1].value / groups;
    int32_t size = bind_extent(x, 2, x.rank);
    NormRows r = {(int32_t)x.dims[0].value * groups, members * size, groups, 1, members * size};
    if (has_channels(c)) {
        r.step = members;
        r.block = size;
    }
    return bind_channels(b, n, c, &r, a->epsilon);
}

/* One number a group as one a channel. */
static bool repeat(Node *n, size_t at, int64_t groups, int64_t channels, UniqueNames *names,
                   Diags *d) {
    Value *v = n->in[at];
    const Tensor *t = value_data(v);
    if (!t || !t->data || channels < 0 || t->count != (size_t)groups)
        return diag_error(d, n->loc,
                          "%s: from opset 21 on '%s' has a number for each channel, and it or the "
                          "number of channels is not constant",
                          node_text(n), diag_name(d, v->name));
    Arena *a = n->graph->module->arena;
    size_t size = elem_bytes(t->elem, 1), members = (size_t)(channels / groups);
    uint8_t *to;
    Tensor *all = tensor_new(a, t->elem, 1, &channels, &to);
    for (size_t i = 0; i < (size_t)channels; i++)
        memcpy(to + i * size, t->data + i / members * size, size);
    n->in[at] = graph_add_const(n->graph, unique_name(names, v->name), tensor_type(a, all), all);
    value_from(n->in[at], v, "upgrade");
    return true;
}

static bool group_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    const NormAttrs *a = n->typed;
    if (from >= 21 || to < 21 || !a || n->n_in <= BIAS)
        return true;
    Type x = n->in[X]->type;
    int64_t channels = x.kind == TYPE_TENSOR && x.rank > 1 ? x.dims[1].value : -1;
    OpCtx c = op_ctx(n, d);
    return has_channels(&c) || (repeat(n, SCALE, a->num_groups, channels, names, d) &&
                                repeat(n, BIAS, a->num_groups, channels, names, d));
}

const OpDef op_GroupNormalization = {
    .domain = "",
    .name = "GroupNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = group_attrs,
    .verify = group_verify,
    .infer = op_same_type,
    .slices = op_slices_first,
    NORM_QUANT(0),
    .upgrade = group_upgrade,
    .bind = group_bind,
};

/* ---- SkipLayerNormalization ---- */

enum { INPUT, SKIP, GAMMA, BETA, SKIP_BIAS };
enum { RESULT, MEAN, SPREAD, SUM };

static const AttrSpec skip_attrs[] = {
    A_FLOAT(NormAttrs, epsilon, 1e-12f),
    A_END,
};

static bool skip_infer(OpCtx *c) {
    Type x = op_type(c, INPUT);
    for (size_t i = 1; i < c->n_out && x.rank > 0; i++) {
        Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
        if (i != SUM)
            dims[x.rank - 1] = dim_of(1);
        c->out[i] = type_tensor(i == SUM ? type_real_elem(x) : ELEM_FLOAT, x.rank, dims);
    }
    return op_same_type(c);
}

/* The skip may broadcast. */
static int skip_slices(const OpCtx *c, size_t i, int axis, size_t result) {
    int to = i == INPUT || i == SKIP ? op_slices_each(c, i, axis, result) : -1;
    return to < op_type(c, INPUT).rank - 1 ? to : -1;
}

static bool bind_add(Binder *b, const Node *n, const Value *with, int x, int to) {
    Type y = n->in[INPUT]->type;
    Broadcast s = bind_broadcast(y, with->type, y);
    return bind_binary(b, n, "add", ELEM_FLOAT, s, (int[]){x, bind_value(b, with), to});
}

static bool bind_skip(Binder *b, const Node *n, const OpCtx *c, bool centre) {
    const NormAttrs *a = c->attrs;
    Type x = n->in[INPUT]->type;
    const Value *bias = op_in(c, centre ? SKIP_BIAS : BETA),
                *sum_out = n->n_out > SUM ? n->out[SUM] : NULL;
    size_t count = (size_t)bind_count(n->in[INPUT]);
    if (!bind_floats_only(b, n))
        return false;
    int sum = sum_out ? bind_value(b, sum_out) : bind_temp(b, ELEM_FLOAT, count);
    int first = bias ? bind_temp(b, ELEM_FLOAT, count) : sum;
    int stats[2] = {n->n_out > MEAN ? bind_value(b, n->out[MEAN]) : -1,
                    n->n_out > SPREAD ? bind_value(b, n->out[SPREAD]) : -1};
    NormRows r = {bind_extent(x, 0, x.rank - 1), (int32_t)x.dims[x.rank - 1].value, 1, 0, 1};
    return bind_add(b, n, n->in[SKIP], bind_value(b, n->in[INPUT]), first) &&
           (!bias || bind_add(b, n, bias, first, sum)) &&
           bind_rows(b, n, r, a->epsilon, centre,
                     (int[]){sum, bind_value(b, n->in[GAMMA]),
                             bind_value(b, centre ? op_in(c, BETA) : NULL),
                             bind_value(b, n->out[RESULT])},
                     stats);
}

static bool skip_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_skip(b, n, c, true);
}

/* Its operand 3 is the bias: there is no beta. */
static bool skip_simple_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_skip(b, n, c, false);
}

static bool skip_verify(const OpCtx *c) {
    Type x = op_type(c, INPUT);
    if (x.rank < 0)
        return true;
    if (x.rank < 1)
        return op_error_in(c, INPUT, "input is a scalar");
    int64_t last = x.dims[x.rank - 1].value;
    return check_count(c, GAMMA, last) && (!op_in(c, BETA) || check_count(c, BETA, last)) &&
           (!op_in(c, SKIP_BIAS) || check_count(c, SKIP_BIAS, last));
}

const OpDef op_SkipLayerNormalization = {
    .domain = "com.microsoft",
    .name = "SkipLayerNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = skip_attrs,
    .verify = skip_verify,
    .infer = skip_infer,
    .slices = skip_slices,
    .quant = {.scaled.proportional = 1U << GAMMA | 1U << BETA},
    .bind = skip_bind,
};

const OpDef op_SkipSimplifiedLayerNormalization = {
    .domain = "com.microsoft",
    .name = "SkipSimplifiedLayerNormalization",
    .attrs_size = sizeof(NormAttrs),
    .attrs = skip_attrs,
    .verify = skip_verify,
    .infer = skip_infer,
    .slices = skip_slices,
    .quant = {.scaled.proportional = 1U << GAMMA},
    .bind = skip_simple_bind,
};
