/* AveragePool and GlobalAveragePool, with QLinearAveragePool and QLinearGlobalAveragePool.
 * AveragePool: 10 added ceil_mode, 19 dilations. Defaults of what was added mean the old operator.
 */
#include "ir/ops/overlay.h"
#include "ir/ops/pool.h"
#include "ir/ops/rounding.h"
#include "kernels/requant_host.h"

typedef struct AverageAttrs {
    WindowAttrs w; /* first: POOL_ATTRS */
    int64_t count_include_pad;
} AverageAttrs;

static const AttrSpec average_attrs[] = {
    POOL_ATTRS(AverageAttrs),
    A_FLAG(AverageAttrs, count_include_pad, 0),
    A_END,
};

/* Both orders of elements have the same parameters. */
_Static_assert(sizeof(qk_avgpool2d_nhwc_q_params) == sizeof(qk_avgpool2d_q_params) &&
                   sizeof(qk_avgpool2d_nhwc_f32_params) == sizeof(qk_avgpool2d_f32_params),
               "copied as they are");

static bool average_volume_quant(Binder *b, const Node *n, const Spatial *s, const WindowAxis *d,
                                 int32_t include_pad) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[0]);
    if (!bind_one_storage(n))
        return bind_in_double(b, n);
    qk_avgpool3d_q_params p = {.planes = s->n * s->ic,
                               .id = d->in,
                               .ih = s->ih,
                               .iw = s->iw,
                               .od = d->out,
                               .oh = s->oh,
                               .ow = s->ow,
                               .kd = d->kernel,
                               .kh = s->kh,
                               .kw = s->kw,
                               .sd = d->stride,
                               .sh = s->sh,
                               .sw = s->sw,
                               .dd = d->dilation,
                               .dh = s->dh,
                               .dw = s->dw,
                               .pf = d->begin,
                               .pt = s->pt,
                               .pl = s->pl,
                               .pk = d->end,
                               .pb = s->pb,
                               .pr = s->pr,
                               .count_include_pad = include_pad,
                               .xz = quant_zero(x),
                               RESULT_PARAMS(y)};
    requant_pool(quant_scale(x, 0), quant_scale(y, 0), elem_bits(e), (int64_t)p.kd * p.kh * p.kw,
                 &p.m, &p.shift);
    return bind_first(b, n, bind_kernel(b, "avgpool3d_q", 1, &e), &p, sizeof p);
}

static bool average_volume(Binder *b, const Node *n, const Spatial *s, const WindowAxis *d,
                           int32_t include_pad) {
    PoolStages t;
    if (bind_any_quant(n))
        return average_volume_quant(b, n, s, d, include_pad);
    if (!bind_floats_only(b, n) || !pool_stages(b, n, s, d, &t))
        return false;
    qk_avgpool2d_f32_params p = {WINDOW_PARAMS(&t.planes), .c = t.planes.ic, .pb = s->pb,
                                 .pr = s->pr, .count_include_pad = include_pad};
    qk_avgpool2d_f32_params q = {WINDOW_PARAMS(&t.depth), .c = t.depth.ic, .pb = t.depth.pb,
                                 .count_include_pad = include_pad};
    return bind_call(b, n, "qk_avgpool2d_f32", &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[0]), t.between}) &&
           bind_call(b, n, "qk_avgpool2d_f32", &q, sizeof q, 2,
                     (int[]){t.between, bind_value(b, n->out[0])});
}

static bool average_float(Binder *b, const Node *n, const Spatial *s, int32_t include_pad) {
    qk_avgpool2d_f32_params p = {WINDOW_PARAMS(s), .c = s->ic, .pb = s->pb, .pr = s->pr,
                                 .count_include_pad = include_pad};
    if (!bind_floats_only(b, n))
        return false;
    if (!bind_is_last(b, n->in[0]) || bind_real(b) != ELEM_FLOAT)
        return pool_call_planes(b, n, s, "qk_avgpool2d_f32", &p, sizeof p, bind_real(b));
    qk_avgpool2d_nhwc_f32_params q;
    memcpy(&q, &p, sizeof q);
    return pool_call_last(b, n, s, "qk_avgpool2d_nhwc_f32", &q, sizeof q, ELEM_FLOAT);
}

/* Whether to average with channels last: they are, and the sums fit. */
static bool sums_last(Binder *b, const Node *n, const Spatial *s) {
    return bind_is_last(b, n->in[0]) && elem_bits(bind_elem(n->in[0])) == 8 &&
           (int64_t)s->kh * s->kw <= 1 << 22;
}

static bool average_quant(Binder *b, const Node *n, const Spatial *s, int32_t include_pad) {
    if (!bind_one_storage(n))
        return bind_in_double(b, n);
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[0]);
    qk_avgpool2d_q_params p = {WINDOW_PARAMS(s),
                               .c = s->ic,
                               .pb = s->pb,
                               .pr = s->pr,
                               .count_include_pad = include_pad,
                               .xz = quant_zero(x),
                               RESULT_PARAMS(y)};
    requant_pool(quant_scale(x, 0), quant_scale(y, 0), elem_bits(e), (int64_t)s->kh * s->kw, &p.m,
                 &p.shift);
    if (!sums_last(b, n, s))
        return pool_call_planes(b, n, s, bind_kernel(b, "avgpool2d_q", 1, &e), &p, sizeof p, e);
    qk_avgpool2d_nhwc_q_params q;
    memcpy(&q, &p, sizeof q);
    int args[] = {bind_last(b, n, n->in[0]), bind_last(b, n, n->out[0]),
                  bind_scratch(b, ELEM_INT32, (size_t)s->ic)};
    if (!bind_call(b, n, bind_kernel(b, "avgpool2d_nhwc_q", 1, &e), &q, sizeof q, 3, args))
        return false;
    bind_over(b, 0, lead_window(s, e, e, 0));
    return true;
}

static bool average_bind(Binder *b, const Node *n, const OpCtx *c) {
    const AverageAttrs *a = c->attrs;
    int32_t include_pad = a->count_include_pad != 0;
    Spatial s;
    WindowAxis depth;
    if (!pool_spatial(b, n, c, &s, &depth))
        return false;
    if (n->in[0]->type.rank == 5)
        return average_volume(b, n, &s, &depth, include_pad);
    return bind_any_quant(n) ? average_quant(b, n, &s, include_pad)
                             : average_float(b, n, &s, include_pad);
}

static bool global_average_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Spatial s = pool_global_spatial(n);
    if (!bind_any_quant(n))
        return average_float(b, n, &s, 0);
    if (!bind_one_storage(n))
        return bind_in_double(b, n);
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[0]);
    qk_globalavgpool_q_params p = {
        .outer = s.n * s.ic, .inner = s.iw, .xz = quant_zero(x), RESULT_PARAMS(y)};
    float sx = quant_scale(x, 0), sy = quant_scale(y, 0);
    Multiplier m = {sx / (sy * (float)s.iw), (double)sx / ((double)sy * s.iw)};
    SumRounding r = bind_average_rounding(b);
    bind_multiplier(b, n, r, m, &p.c, &p.k);
    if (sums_last(b, n, &s)) {
        qk_globalavgpool_nhwc_q_params q = {.n = s.n,
                                            .plane = s.iw,
                                            .channels = s.ic,
                                            .xz = p.xz,
                                            .yz = p.yz,
                                            .lo = p.lo,
                                            .hi = p.hi,
                                            .c = p.c,
                                            .k = p.k};
        int args[] = {bind_last(b, n, n->in[0]), bind_last(b, n, n->out[0]),
                      bind_scratch(b, ELEM_INT32, (size_t)s.ic)};
        return bind_rounded(b, n, r, bind_kernel(b, "globalavgpool_nhwc_q", 1, &e), &q, sizeof q, 3,
                            args);
    }
    return bind_rounded(b, n, r, bind_kernel(b, "globalavgpool_q", 1, &e), &p, sizeof p, 2,
                        (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])});
}

static void drop_layout(const Node *from, Node *to) {
    (void)from;
    node_drop_attr(to, "channels_last");
}

static void drop_dilations(const Node *from, Node *to) {
    (void)from;
    node_drop_attr(to, "dilations");
}

/* onnxruntime's fusion hands them on to QLinearAveragePool, which has none. */
static void drop_idle_dilations(Node *n, UniqueNames *names) {
    (void)names;
    const AverageAttrs *a = n->typed;
    for (size_t i = 0; i < a->w.dilations.n; i++)
        if (a->w.dilations.v[i] != 1)
            return;
    node_drop_attr(n, "dilations");
}

static bool has_pads(const AverageAttrs *a) {
    for (size_t i = 0; i < a->w.pads.n; i++)
        if (a->w.pads.v[i])
            return true;
    return false;
}

/* The zeros are counted; a window that overhangs counts otherwise in what is padded. */
static bool average_takes_pads(Node *n, const int64_t *before, const int64_t *after, float least) {
    (void)least;
    const AverageAttrs *a = n->typed;
    if (a->w.ceil_mode || (has_pads(a) && !a->count_include_pad) ||
        !op_window_grow(n, &a->w, before, after, a->w.kernel_shape.v))
        return false;
    node_set_int(n, "count_include_pad", 1);
    return true;
}

const OpDef op_AveragePool = {
    .domain = "",
    .name = "AveragePool",
    .attrs_size = sizeof(AverageAttrs),
    .attrs = average_attrs,
    .verify = pool_verify,
    .infer = pool_infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .scaled.homogeneous = true, .same_storage = true},
    .qop = {.domain = "com.microsoft",
            .op = "QLinearAveragePool",
            .operands = "0* y",
            .since = 10,
            .lower_attrs = drop_dilations,
            .raise_attrs = drop_layout},
    .take_pads = average_takes_pads,
    .normalize = drop_idle_dilations,
    .bind = average_bind,
};

const OpDef op_GlobalAveragePool = {
    .domain = "",
    .name = "GlobalAveragePool",
    .verify = pool_global_verify,
    .infer = pool_global_infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .scaled.homogeneous = true, .same_storage = true},
    .qop = {.domain = "com.microsoft",
            .op = "QLinearGlobalAveragePool",
            .operands = "0* y",
            .since = 10,
            .raise_attrs = drop_layout},
    .bind = global_average_bind,
};
