/* ConvTranspose. 11 and 22: only types and wording. Weights are [C, M / group, k...]: their
 * channels are an axis only where there is one group. */
#include "ir/ops/conv.h"
#include "ir/ops/conv_float.h"
#include "ir/ops/convtranspose_last.h"
#include "ir/ops/mac.h"
#include "ir/ops/volume.h"

typedef struct ConvTransposeAttrs {
    WindowAttrs w;
    int64_t group;
    Ints output_shape, output_padding;
} ConvTransposeAttrs;

static const AttrSpec attrs[] = {
    WINDOW_ATTRS(ConvTransposeAttrs),
    A_INT(ConvTransposeAttrs, group, 1),
    A_INTS(ConvTransposeAttrs, output_shape),
    A_INTS(ConvTransposeAttrs, output_padding),
    A_END,
};

enum { X, W, B };

static bool verify(const OpCtx *c) {
    const ConvTransposeAttrs *a = c->attrs;
    Type x = op_type(c, X), w = op_type(c, W);
    int64_t per_group = w.rank > 1 ? w.dims[1].value : -1;
    if (!conv_verify_operands(c, a->group, per_group < 0 ? -1 : dim_mul(per_group, a->group)))
        return false;
    if (x.rank < 0 || w.rank < 0)
        return true;
    int64_t channels = x.dims[1].value, in = w.dims[0].value;
    size_t n = (size_t)x.rank - 2;
    if (dim_differ(channels, in))
        return op_error_in(c, W, "input has %lld channels, weights want %lld", (long long)channels,
                           (long long)in);
    if (in >= 0 && in % a->group)
        return op_error_attr(c, "group", "%lld channels do not divide into %lld groups",
                             (long long)in, (long long)a->group);
    return op_list_fits(c, "strides", a->w.strides, n, 1) &&
           op_list_fits(c, "dilations", a->w.dilations, n, 1) &&
           op_list_fits(c, "pads", a->w.pads, 2 * n, 0) &&
           op_list_fits(c, "output_shape", a->output_shape, n, 1) &&
           op_list_fits(c, "output_padding", a->output_padding, n, 0);
}

/* One spatial axis: what is cut off at its begin, and its length (-1: unknown). */
typedef struct Spread {
    int64_t kernel, stride, dilation, cut, out;
} Spread;

/* Without a stated length, pads are cut off; with one, what is too much, more of it at the end for
 * SAME_UPPER and at the begin otherwise. */
static Spread spread(const OpCtx *c, int i) {
    const ConvTransposeAttrs *a = c->attrs;
    Type x = op_type(c, X);
    int64_t in = x.dims[2 + i].value, n = x.rank - 2;
    Spread s = {.kernel = op_type(c, W).dims[2 + i].value,
                .stride = a->w.strides.v ? a->w.strides.v[i] : 1,
                .dilation = a->w.dilations.v ? a->w.dilations.v[i] : 1,
                .out = -1};
    bool same = str_is(a->w.auto_pad, "SAME_UPPER") || str_is(a->w.auto_pad, "SAME_LOWER");
    bool stated = a->w.pads.v && str_is(a->w.auto_pad, "NOTSET");
    int64_t extra = a->output_padding.v ? a->output_padding.v[i] : 0;
    if (in < 0 || s.kernel < 0)
        return s;
    int64_t full =
        dim_add(dim_mul(in - 1, s.stride), dim_mul(s.kernel - 1, s.dilation) + 1 + extra);
    if (a->output_shape.v || same) {
        s.out = a->output_shape.v ? a->output_shape.v[i] : dim_mul(in, s.stride);
        int64_t cut = full > s.out ? full - s.out : 0;
        s.cut = str_is(a->w.auto_pad, "SAME_UPPER") ? cut / 2 : cut - cut / 2;
        return s;
    }
    s.cut = stated ? a->w.pads.v[i] : 0;
    s.out = full - s.cut - (stated ? a->w.pads.v[i + n] : 0);
    return s;
}

static bool infer(OpCtx *c) {
    const ConvTransposeAttrs *a = c->attrs;
    Type x = op_type(c, X), w = op_type(c, W);
    if (x.rank < 3 || w.rank != x.rank)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    int64_t channels = w.dims[1].value;
    dims[0] = x.dims[0];
    dims[1] = channels < 0 ? dim_unknown() : dim_of(dim_mul(channels, a->group));
    for (int i = 2; i < x.rank; i++) {
        bool known = x.dims[i].value >= 0 && w.dims[i].value >= 0;
        Spread s = spread(c, i - 2);
        if (known && (s.out < 0 || s.out > INT32_MAX))
            return op_error(c, "axis %d of the result would have length %lld", i, (long long)s.out);
        dims[i] = known ? dim_of(s.out) : dim_unknown();
    }
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int weight_axis(const OpCtx *c) {
    return ((const ConvTransposeAttrs *)c->attrs)->group == 1 ? 1 : -1;
}

/* ---- binding ---- */

/* As a window of Conv, whose input is the result here and whose result the input. */
static Window window_of(const OpCtx *c) {
    Window w = {.n = op_type(c, X).rank - 2};
    for (int i = 0; i < w.n; i++) {
        Spread s = spread(c, i);
        w.kernel[i] = s.kernel;
        w.stride[i] = s.stride;
        w.dilation[i] = s.dilation;
        w.pad_begin[i] = s.cut;
    }
    return w;
}

static bool bind_sizes(Binder *b, const Node *n, const Window *w, Spatial *s) {
    Spatial conv;
    if (!bind_spatial(b, n, w, n->out[0]->type, n->in[X]->type, &conv))
        return false;
    *s = conv;
    s->ic = conv.oc;
    s->ih = conv.oh;
    s->iw = conv.ow;
    s->oc = conv.ic;
    s->oh = conv.ih;
    s->ow = conv.iw;
    return true;
}

/* Weights [c, m, kernel, plane] as those of images: [c, kernel, m, plane]. -1 after an error.
 * Without a volume they are what they are. */
static int planes_outside(Binder *b, const Node *n, const Volume *v, int weights, ElemType e) {
    if (!v)
        return weights;
    Type w = n->in[W]->type;
    int32_t m = (int32_t)w.dims[1].value, plane = bind_extent(w, 3, 5), all = m * v->kernel * plane;
    qk_copy_nd_params p = {.rank = 4,
                           .dim = {v->c, v->kernel, m, plane},
                           .ss = {all, plane, v->kernel * plane, 1},
                           .ds = {all, m * plane, plane, 1}};
    int to = bind_temp(b, e, (size_t)v->c * (size_t)all);
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2, (int[]){weights, to})
               ? to
               : -1;
}

static bool bind_float(Binder *b, const Node *n, const OpCtx *c, const Spatial *s, int32_t group,
                       const Volume *v) {
    qk_convtranspose_f32_params p = {WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc, .group = group,
                                     .has_bias = op_in(c, B) != NULL};
    int at[4];
    ElemType e = bind_real(b);
    if (!mac_floats(b, n, op_in(c, B), at))
        return false;
    int args[] = {at[0], at[1], at[2], at[3]};
    args[0] = volume_images(b, n, v, at[0], e, 0);
    args[1] = planes_outside(b, n, v, at[1], e);
    args[3] = volume_result(b, v, at[3], e);
    return args[0] >= 0 && bind_call(b, n, "qk_convtranspose_f32", &p, sizeof p, 4, args) &&
           volume_store(b, n, v, args[3], at[3], e) && mac_store(b, n, at);
}

static bool bind_quant(Binder *b, const Node *n, const OpCtx *c, const Spatial *s, int32_t group,
                       const Volume *v) {
    Mac m;
    int bias = -1;
    int32_t wz_step;
    bool no_wz;
    int64_t terms = (int64_t)(s->ic / group) * s->kh * s->kw;
    if (mac_dynamic_refused(b, n, n->in[W]))
        return false;
    if (!mac_prepare(b, n->in[X], n->in[W], n->out[0], 1, (size_t)s->oc, terms, 1.0f, &m) || m.raw)
        return bind_in_double_as(b, n, m.raw ? "it gives its sums" : m.why);
    if (!mac_bias(b, &m, op_in(c, B), 1, 1.0f, &bias))
        return bind_in_double_as(b, n, m.why);
    m.types[1] = bind_elem(n->in[W]);
    qk_convtranspose_q_params p = {WINDOW_PARAMS(s), MAC_RESULT(&m), .m_step = m.m_step, .xz = m.xz,
                                   .ic = s->ic,      .oc = s->oc,    .group = group};
    int wz = mac_weight_zp(b, &m, 0, &wz_step, &no_wz);
    int w = bind_value(b, n->in[W]);
    Beside beside = {bias, m.real, 1.0f, -1};
    if (!v && no_wz && convtranspose_last_fits(b, s, &m, group, w, &beside))
        return convtranspose_last_bind(b, n, s, &m, w, beside);
    int x = bind_value(b, n->in[X]), y = mac_output(b, n, &m);
    ElemType made = bind_elem(n->out[0]);
    int to = volume_result(b, v, y, made);
    x = volume_images(b, n, v, x, bind_elem(n->in[X]), m.xz);
    w = planes_outside(b, n, v, w, m.types[1]);
    p.wz_step = wz_step;
    MacBuffers at = {x, w, bias, wz, to};
    return x >= 0 && mac_call(b, n, &m, "convtranspose_q", &p, sizeof p, at, 0, NULL) &&
           volume_store(b, n, v, to, y, made) && mac_finish(b, n, &m, 1.0f, y);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    int32_t group = (int32_t)((const ConvTransposeAttrs *)c->attrs)->group;
    Type x = n->in[X]->type, y = n->out[0]->type;
    Window w = window_of(c);
    Spatial s;
    Volume volume, *v = NULL;
    if (!bind_sizes(b, n, &w, &s))
        return false;
    if (w.n == 3) {
        volume = volume_of(&w, x, y, &s);
        volume.spread = true;
        v = &volume;
    }
    bind_macs(b,
              (int64_t)bind_count(n->in[X]) * (s.oc / group) * s.kh * s.kw * (v ? v->kernel : 1));
    if (bind_any_quant(n) && mac_fits(n->in[X], n->in[W]))
        return bind_quant(b, n, c, &s, group, v);
    if (!v && convtranspose_float_fits(b, n, &s, group))
        return convtranspose_float_bind(b, n, &s, group);
    return bind_float(b, n, c, &s, group, v);
}

const OpDef op_ConvTranspose = {
    .domain = "",
    .name = "ConvTranspose",
    .family = FAMILY_CONVOLUTION,
    .attrs_size = sizeof(ConvTransposeAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_MAC,
              .data = 1u << X,
              .mac.weight = W,
              .mac.bias = B,
              .mac.weight_axis = weight_axis},
    .bind = bind,
};
