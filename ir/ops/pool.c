/* AveragePool, MaxPool and their global forms, with QLinearAveragePool and
 * QLinearGlobalAveragePool. AveragePool: 10 added ceil_mode, 19 dilations. MaxPool: 8 the indices,
 * 10 ceil_mode and dilations, 12 int8. Defaults of what was added mean the old operator. */
#include "ir/ops/pool.h"

#include "ir/ops/overlay.h"
#include "ir/ops/rounding.h"
#include "kernels/requant_host.h"

typedef struct PoolAttrs {
    WindowAttrs w;
    int64_t count_include_pad, storage_order;
} PoolAttrs;

static const AttrSpec average_attrs[] = {
    WINDOW_ATTRS(PoolAttrs),
    ATTR(PoolAttrs, w.ceil_mode, "ceil_mode", ATTR_INT, .def_int = 0, .flag = true),
    A_FLAG(PoolAttrs, count_include_pad, 0),
    A_END,
};

static const AttrSpec max_attrs[] = {
    WINDOW_ATTRS(PoolAttrs),
    ATTR(PoolAttrs, w.ceil_mode, "ceil_mode", ATTR_INT, .def_int = 0, .flag = true),
    A_FLAG(PoolAttrs, storage_order, 0),
    A_END,
};

static bool check_rank(const OpCtx *c, Type x) {
    return x.rank >= 3 || x.rank < 0 ||
           op_error_in(c, 0, "input must have rank 3 or more, not %d", x.rank);
}

bool pool_verify(const OpCtx *c, const WindowAttrs *a) {
    if (!a->kernel_shape.v)
        return op_error(c, "needs attribute 'kernel_shape'");
    return check_rank(c, op_type(c, 0));
}

bool pool_infer(OpCtx *c, const WindowAttrs *a) {
    Type x = op_type(c, 0);
    Window w;
    if (x.rank < 3)
        return true;
    if (!a->kernel_shape.v)
        return op_error(c, "needs attribute 'kernel_shape'");
    if (!op_window(c, a, x, NULL, &w))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    dims[0] = x.dims[0];
    dims[1] = x.dims[1];
    for (int i = 0; i < w.n; i++)
        dims[2 + i] = w.out[i];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    if (c->n_out > 1) /* MaxPool's indices */
        c->out[1] = type_tensor(ELEM_INT64, x.rank, dims);
    return true;
}

bool pool_global_verify(const OpCtx *c) {
    return check_rank(c, op_type(c, 0));
}

bool pool_global_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.rank < 3)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    for (int i = 0; i < x.rank; i++)
        dims[i] = i < 2 ? x.dims[i] : dim_of(1);
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static bool verify(const OpCtx *c) {
    const PoolAttrs *a = c->attrs;
    return pool_verify(c, &a->w);
}

static bool infer(OpCtx *c) {
    const PoolAttrs *a = c->attrs;
    return pool_infer(c, &a->w);
}

/* Both orders of elements have the same parameters. */
_Static_assert(sizeof(qk_avgpool2d_nhwc_q_params) == sizeof(qk_avgpool2d_q_params) &&
                   sizeof(qk_avgpool2d_nhwc_f32_params) == sizeof(qk_avgpool2d_f32_params) &&
                   sizeof(qk_maxpool2d_nhwc_params) == sizeof(qk_maxpool2d_params),
               "copied as they are");

/* ---- windows for binding ---- */

/* `depth`: the first of three dimensions. */
static bool spatial(Binder *b, const Node *n, const OpCtx *c, Spatial *s, WindowAxis *depth) {
    const PoolAttrs *a = c->attrs;
    Type x = n->in[0]->type, y = n->out[0]->type;
    Window w;
    if (!op_window(c, &a->w, x, NULL, &w) || !bind_spatial(b, n, &w, x, y, s))
        return false;
    *depth = window_axis(&w, w.n - 3, x, y);
    return true;
}

/* The whole plane, of any rank, as one row. */
static Spatial global_spatial(const Node *n) {
    Type x = n->in[0]->type;
    int32_t plane = bind_extent(x, 2, x.rank), c = (int32_t)x.dims[1].value;
    return (Spatial){.n = (int32_t)x.dims[0].value,
                     .ic = c,
                     .ih = 1,
                     .iw = plane,
                     .oc = c,
                     .oh = 1,
                     .ow = 1,
                     .kh = 1,
                     .kw = plane,
                     .sh = 1,
                     .sw = 1,
                     .dh = 1,
                     .dw = 1};
}

/* ---- averages ---- */

/* A kernel on [n, c, h, w] that reads each window before it writes its result. */
static bool call_planes(Binder *b, const Node *n, const Spatial *s, const char *kernel,
                        const void *params, size_t size, ElemType e) {
    if (!bind_call(b, n, kernel, params, size, 2,
                   (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])}))
        return false;
    bind_over(b, 0, lead_planes(s, e, e, 0));
    return true;
}

/* A kernel on [n, h, w, c] that adds up results in their place. */
static bool call_last(Binder *b, const Node *n, const Spatial *s, const char *kernel,
                      const void *params, size_t size, ElemType e) {
    if (!bind_call(b, n, kernel, params, size, 2,
                   (int[]){bind_last(b, n, n->in[0]), bind_last(b, n, n->out[0])}))
        return false;
    bind_over(b, 0, lead_window(s, e, e, 1)); /* it begins with results that it then changes */
    return true;
}

/* Three spatial dimensions: planes first, which lie side by side, then what was made of them, each
 * a row, along the first dimension. Counts of elements inside are products of those of both. */
typedef struct Stages {
    Spatial planes, depth;
    int between; /* buffer */
} Stages;

static bool stages(Binder *b, const Node *n, const Spatial *s, const WindowAxis *d, Stages *to) {
    int32_t row = s->oh * s->ow;
    int64_t planes = (int64_t)s->n * s->ic * d->in;
    if (dim_mul(planes, row) > INT32_MAX)
        return bind_unsupported(b, n, "its planes have more than 2^31 elements");
    to->planes = *s;
    to->planes.ic = s->ic * d->in;
    to->depth = (Spatial){.n = s->n,
                          .ic = s->ic,
                          .ih = d->in,
                          .iw = row,
                          .oc = s->ic,
                          .oh = d->out,
                          .ow = row,
                          .kh = d->kernel,
                          .kw = 1,
                          .sh = d->stride,
                          .sw = 1,
                          .dh = d->dilation,
                          .dw = 1,
                          .pt = d->begin,
                          .pb = d->end};
    to->between = bind_temp(b, bind_elem(n->in[0]), (size_t)(planes * row));
    return true;
}

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
    return bind_call(b, n, bind_kernel(b, "avgpool3d_q", 1, &e), &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[0]), bind_value(b, n->out[0])});
}

static bool average_volume(Binder *b, const Node *n, const Spatial *s, const WindowAxis *d,
                           int32_t include_pad) {
    Stages t;
    if (bind_any_quant(n))
        return average_volume_quant(b, n, s, d, include_pad);
    if (!bind_floats_only(b, n) || !stages(b, n, s, d, &t))
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
        return call_planes(b, n, s, "qk_avgpool2d_f32", &p, sizeof p, bind_real(b));
    qk_avgpool2d_nhwc_f32_params q;
    memcpy(&q, &p, sizeof q);
    return call_last(b, n, s, "qk_avgpool2d_nhwc_f32", &q, sizeof q, ELEM_FLOAT);
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
        return call_planes(b, n, s, bind_kernel(b, "avgpool2d_q", 1, &e), &p, sizeof p, e);
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
    const PoolAttrs *a = c->attrs;
    int32_t include_pad = a->count_include_pad != 0;
    Spatial s;
    WindowAxis depth;
    if (!spatial(b, n, c, &s, &depth))
        return false;
    if (n->in[0]->type.rank == 5)
        return average_volume(b, n, &s, &depth, include_pad);
    return bind_any_quant(n) ? average_quant(b, n, &s, include_pad)
                             : average_float(b, n, &s, include_pad);
}

static bool global_average_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Spatial s = global_spatial(n);
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
    const PoolAttrs *a = n->typed;
    for (size_t i = 0; i < a->w.dilations.n; i++)
        if (a->w.dilations.v[i] != 1)
            return;
    node_drop_attr(n, "dilations");
}

static bool has_pads(const PoolAttrs *a) {
    for (size_t i = 0; i < a->w.pads.n; i++)
        if (a->w.pads.v[i])
            return true;
    return false;
}

/* The zeros are counted; a window that overhangs counts otherwise in what is padded. */
static bool average_takes_pads(Node *n, const int64_t *before, const int64_t *after, float least) {
    (void)least;
    const PoolAttrs *a = n->typed;
    if (a->w.ceil_mode || (has_pads(a) && !a->count_include_pad) ||
        !op_window_grow(n, &a->w, before, after, a->w.kernel_shape.v))
        return false;
    node_set_int(n, "count_include_pad", 1);
    return true;
}

const OpDef op_AveragePool = {
    .domain = "",
    .name = "AveragePool",
    .attrs_size = sizeof(PoolAttrs),
    .attrs = average_attrs,
    .verify = verify,
    .infer = infer,
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

/* ---- maxima ---- */

static int move_channel(const OpCtx *c, int axis) {
    (void)c;
    return axis < 2 ? axis : -1;
}

static bool same_quant(Binder *b, const Node *n) {
    return bind_equal_quant(n->in[0], n->out[0]) ||
           bind_unsupported(b, n, "operand and result are quantized differently");
}

static bool max_call(Binder *b, const Node *n, const Spatial *s) {
    ElemType e = bind_elem(n->in[0]);
    qk_maxpool2d_params p = {WINDOW_PARAMS(s), .c = s->ic};
    const char *last = bind_kernel(b, "maxpool2d_nhwc", 1, &e);
    if (!bind_is_last(b, n->in[0]) || !kernel_find(last))
        return call_planes(b, n, s, bind_kernel(b, "maxpool2d", 1, &e), &p, sizeof p, e);
    qk_maxpool2d_nhwc_params q;
    memcpy(&q, &p, sizeof q);
    return call_last(b, n, s, last, &q, sizeof q, e);
}

static bool max_volume(Binder *b, const Node *n, const Spatial *s, const WindowAxis *depth) {
    ElemType e = bind_elem(n->in[0]);
    const char *kernel = bind_kernel(b, "maxpool2d", 1, &e);
    Stages t;
    if (!stages(b, n, s, depth, &t))
        return false;
    qk_maxpool2d_params p = {WINDOW_PARAMS(&t.planes), .c = t.planes.ic};
    qk_maxpool2d_params d = {WINDOW_PARAMS(&t.depth), .c = t.depth.ic};
    return bind_call(b, n, kernel, &p, sizeof p, 2, (int[]){bind_value(b, n->in[0]), t.between}) &&
           bind_call(b, n, kernel, &d, sizeof d, 2, (int[]){t.between, bind_value(b, n->out[0])});
}

static bool indexed(const Node *n) {
    return n->n_out > 1 && n->out[1];
}

/* With the places of the maxima, counted over the whole tensor; nobody may read them. */
static bool max_indices(Binder *b, const Node *n, const OpCtx *c, const Spatial *s,
                        const WindowAxis *d) {
    const PoolAttrs *a = c->attrs;
    ElemType e = bind_elem(n->in[0]);
    qk_maxpool_indices_params p = {
        WINDOW_PARAMS(s),  .c = s->ic,      .id = d->in,
        .od = d->out,      .kd = d->kernel, .sd = d->stride,
        .dd = d->dilation, .pf = d->begin,  .column_major = a->storage_order != 0};
    int x = bind_value(b, n->in[0]), y = bind_value(b, n->out[0]);
    int places = indexed(n) ? bind_value(b, n->out[1])
                            : bind_temp(b, ELEM_INT64, (size_t)bind_count(n->out[0]));
    return bind_call(b, n, bind_kernel(b, "maxpool_indices", 1, &e), &p, sizeof p, 3,
                     (int[]){x, y, places});
}

static bool max_bind(Binder *b, const Node *n, const OpCtx *c) {
    Spatial s;
    WindowAxis depth;
    if (!spatial(b, n, c, &s, &depth) || !same_quant(b, n))
        return false;
    bool volume = n->in[0]->type.rank == 5;
    /* Floats may be NaN, of which only the first of the whole window counts. */
    if (indexed(n) || (volume && elem_is_float(bind_elem(n->in[0]))))
        return max_indices(b, n, c, &s, &depth);
    return volume ? max_volume(b, n, &s, &depth) : max_call(b, n, &s);
}

static bool global_max_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    Spatial s = global_spatial(n);
    return same_quant(b, n) && max_call(b, n, &s);
}

/* Padding stands for less than any number, and zeros for that where there is nothing below them.
 * Each window has a number of its own: pads are smaller than it, and its elements lie side by side.
 */
static bool max_takes_pads(Node *n, const int64_t *before, const int64_t *after, float least) {
    const PoolAttrs *a = n->typed;
    for (size_t i = 0; i < a->w.dilations.n; i++)
        if (a->w.dilations.v[i] != 1)
            return false;
    return least >= 0 && !a->w.ceil_mode && n->n_out == 1 &&
           op_window_grow(n, &a->w, before, after, a->w.kernel_shape.v);
}

const OpDef op_MaxPool = {
    .domain = "",
    .name = "MaxPool",
    .attrs_size = sizeof(PoolAttrs),
    .attrs = max_attrs,
    .verify = verify,
    .infer = infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_ORDER,
              .data = 1,
              .scaled.homogeneous = true,
              .move.axis = move_channel},
    .take_pads = max_takes_pads,
    .bind = max_bind,
};

const OpDef op_GlobalMaxPool = {
    .domain = "",
    .name = "GlobalMaxPool",
    .verify = pool_global_verify,
    .infer = pool_global_infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_ORDER,
              .data = 1,
              .scaled.homogeneous = true,
              .move.axis = move_channel},
    .bind = global_max_bind,
};
