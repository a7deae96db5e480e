/* Conv and its QOperator form QLinearConv. Opsets 1, 11, 22: only types and defaults' wording. */
#include "ir/ops/conv.h"
#include "ir/ops/conv_float.h"
#include "ir/ops/conv_last.h"
#include "ir/ops/volume.h"
#include "ir/ops/overlay.h"
#include "kernels/requant_host.h"

const AttrSpec conv_attrs[] = {
    WINDOW_ATTRS(ConvAttrs),
    A_INT(ConvAttrs, group, 1),
    A_END,
};

enum { X, W, B };

bool conv_verify_operands(const OpCtx *c, int64_t group, int64_t out) {
    Type x = op_type(c, X), w = op_type(c, W), b = op_type(c, B);
    if (!op_number(c, "group", group))
        return false;
    if (x.rank >= 0 && x.rank < 3)
        return op_error_in(c, X, "input must have rank 3 or more, not %d", x.rank);
    if (x.rank >= 0 && w.rank >= 0 && w.rank != x.rank)
        return op_error_in(c, W, "weights have rank %d, the input %d", w.rank, x.rank);
    if (b.rank >= 0 && out >= 0 &&
        (b.rank != 1 || (b.dims[0].value >= 0 && b.dims[0].value != out)))
        return op_error_in(c, B, "bias must have shape [%lld]", (long long)out);
    return true;
}

bool conv_verify(const OpCtx *c) {
    const ConvAttrs *a = c->attrs;
    Type x = op_type(c, X), w = op_type(c, W);
    if (!conv_verify_operands(c, a->group, w.rank > 0 ? w.dims[0].value : -1))
        return false;
    if (x.rank < 0 || w.rank < 0)
        return true;
    int64_t channels = x.dims[1].value, per_group = w.dims[1].value, out = w.dims[0].value;
    if (channels >= 0 && per_group >= 0 && channels != dim_mul(per_group, a->group))
        return op_error_in(c, W, "input has %lld channels, weights want %lld (%lld x group %lld)",
                           (long long)channels, (long long)dim_mul(per_group, a->group),
                           (long long)per_group, (long long)a->group);
    if (out >= 0 && out % a->group)
        return op_error_attr(c, "group", "%lld output channels do not divide into %lld groups",
                             (long long)out, (long long)a->group);
    return true;
}

bool conv_window(const OpCtx *c, Window *win) {
    const ConvAttrs *a = c->attrs;
    Type w = op_type(c, W);
    int64_t kernel[MAX_RANK];
    for (int i = 2; i < w.rank; i++)
        kernel[i - 2] = w.dims[i].value;
    return op_window(c, &a->w, op_type(c, X), kernel, win);
}

bool conv_infer(OpCtx *c) {
    Type x = op_type(c, X), w = op_type(c, W);
    if (x.rank < 3 || w.rank != x.rank)
        return true;
    Window win;
    if (!conv_window(c, &win))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    dims[0] = x.dims[0];
    dims[1] = w.dims[0];
    for (int i = 0; i < win.n; i++)
        dims[2 + i] = win.out[i];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int weight_axis(const OpCtx *c) {
    (void)c;
    return 0; /* [M, C/group, k...] */
}

/* ---- what a sum goes over ---- */

static bool sums(const OpCtx *c, MacSums *s) {
    const ConvAttrs *a = c->attrs;
    Type x = op_type(c, X), w = op_type(c, W);
    Window win;
    if (x.rank < 3 || w.rank != x.rank || !conv_window(c, &win))
        return false;
    *s = (MacSums){.groups = a->group, .terms = 1, .positions = x.dims[0].value};
    for (int i = 1; i < w.rank; i++)
        s->terms *= w.dims[i].value;
    for (int i = 0; i < win.n; i++)
        s->positions *= win.out[i].value;
    return true;
}

/* Where the window stands, and then each of its places: 0 where it reaches over the edge. */
static void terms(const OpCtx *c, const MacSums *s, const float *x, int64_t position, float *out) {
    Type t = op_type(c, X);
    Window w;
    int64_t at[MAX_RANK], kernel = 1, plane = 1, spatial = 1;
    conv_window(c, &w);
    for (int i = 0; i < w.n; i++) {
        kernel *= w.kernel[i];
        plane *= t.dims[2 + i].value;
        spatial *= w.out[i].value;
    }
    int64_t batch = position / spatial, channels = s->groups * s->terms / kernel;
    position %= spatial;
    for (int i = w.n; i-- > 0; position /= w.out[i].value)
        at[i] = position % w.out[i].value * w.stride[i] - w.pad_begin[i];
    for (int64_t k = 0; k < kernel; k++) {
        int64_t offset = 0, step = 1, rest = k;
        bool inside = true;
        for (int i = w.n; i-- > 0; rest /= w.kernel[i]) {
            int64_t place = at[i] + rest % w.kernel[i] * w.dilation[i];
            inside = inside && place >= 0 && place < t.dims[2 + i].value;
            offset += place * step;
            step *= t.dims[2 + i].value;
        }
        const float *from = x + batch * channels * plane + (inside ? offset : 0);
        for (int64_t ch = 0; ch < channels; ch++)
            out[ch * kernel + k] = inside ? from[ch * plane] : 0;
    }
}

/* ---- binding ---- */

enum { FIRST_LEVEL_CACHE = 32 * 1024, POSITIONS_AT_ONCE = 16 }; /* of tile_f32 */

/* Bytes for unfolded positions. More of them read the weights less often, up to what stays in the
 * cache; but memory is dear where this node is the one that the arena's size depends on. */
static int32_t unfold_bytes(Binder *b, const Node *n) {
    size_t room = bind_room(b, n);
    return room > FIRST_LEVEL_CACHE ? FIRST_LEVEL_CACHE : (int32_t)room;
}

/* One input channel for each output channel; with a single channel in all, conv2d is as good. */
static bool is_depthwise(Type x, Type w) {
    return w.dims[1].value == 1 && x.dims[1].value > 1;
}

static bool bind_float(Binder *b, const Node *n, const OpCtx *c, const Spatial *s, int32_t group,
                       const Volume *v) {
    const Value *bias = op_in(c, B);
    int at[4];
    if (!v && conv_float_fits(b, n, s, group))
        return conv_float_bind(b, n, s, group);
    if (!mac_floats(b, n, bias, at))
        return false;
    int args[] = {at[0], at[1], at[2], at[3], -1};
    args[0] = volume_images(b, n, v, at[0], bind_real(b), 0);
    args[3] = volume_result(b, v, at[3], bind_real(b));
    if (!v && is_depthwise(n->in[X]->type, n->in[W]->type)) {
        qk_depthwise_f32_params p = {WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc,
                                     .has_bias = bias != NULL};
        if (!bind_call(b, n, "qk_depthwise_f32", &p, sizeof p, 4, args))
            return false;
        if (s->ic == s->oc) /* a row of results is begun before its windows are read */
            bind_over(b, 0, lead_planes(s, bind_real(b), bind_real(b), s->ow));
        return mac_store(b, n, at);
    }
    int32_t len = s->ic / group * s->kh * s->kw;
    qk_conv2d_f32_params p = {WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc, .group = group,
                              .has_bias = bias != NULL};
    if (s->oh * s->ow >= POSITIONS_AT_ONCE / 2) { /* fewer would mostly unfold zeros */
        p.tile =
            conv2d_tile(s->oh * s->ow, len, sizeof(float), unfold_bytes(b, n), POSITIONS_AT_ONCE);
        args[4] = bind_scratch(b, ELEM_FLOAT, (size_t)p.tile * (size_t)len);
    }
    return args[0] >= 0 && bind_call(b, n, "qk_conv2d_f32", &p, sizeof p, 5, args) &&
           volume_store(b, n, v, args[3], at[3], bind_real(b)) && mac_store(b, n, at);
}

/* Kernels take signed weights: unsigned ones move down by half their range, with the zero point. */
static bool signed_weights(Binder *b, const Node *n, Mac *m, int *buffer, int32_t *moved) {
    ElemType e = m->types[1];
    *moved = 0;
    if (m->wbits) {
        *buffer = bind_packed(b, n->in[W]);
        return true;
    }
    if (elem_is_signed(e)) {
        *buffer = bind_value(b, n->in[W]);
        return true;
    }
    const Tensor *t = value_data(n->in[W]);
    if (!t || !t->data)
        return mac_refuse(m, "its weights are unsigned, and known only at run time");
    m->types[1] = e == ELEM_UINT8 ? ELEM_INT8 : ELEM_INT16;
    *moved = e == ELEM_UINT8 ? 128 : 32768;
    uint8_t *data = arena_alloc(binder_arena(b), elem_bytes(m->types[1], t->count));
    for (size_t i = 0; i < t->count; i++)
        elem_store_int(m->types[1], data, i, tensor_int(t, i) - *moved);
    *buffer = bind_const(b, m->types[1], t->count, data, "weights, made signed");
    return true;
}

/* conv2d_q takes zero points of weights off once it has summed: int32 must hold what it sums until
 * then, and what it takes off. */
static bool offsets_fit(Mac *m, int64_t terms) {
    int64_t low = elem_min(m->types[1]), high = elem_max(m->types[1]);
    int64_t weight = -low > high ? -low : high;
    return m->acc != ELEM_INT32 || mac_reach(m->x) * weight * terms <= INT32_MAX ||
           mac_refuse(m, "its sums of 8-bit products, weights with their zero points, do not fit "
                         "int32");
}

/* Bytes for one unfolded position of `len` elements with its sums; unpacked weights are scratch,
 * too: of one row at least, better of four. */
typedef struct Unfolded {
    size_t each, row;
} Unfolded;

static Unfolded unfolded(const Mac *m, int32_t len) {
    return (Unfolded){.each = (size_t)len * (size_t)(elem_bits(m->expand) / 8) +
                              5 * (size_t)(elem_bits(m->acc) / 8),
                      .row = m->wbits ? (size_t)len : 0};
}

static int32_t unfold_room(const Spatial *s, const Mac *m, int32_t len, int32_t room) {
    Unfolded u = unfolded(m, len);
    int32_t bytes = elem_bits(m->expand) / 8, rows = 4 * (int32_t)u.row;
    int32_t one = (int32_t)(u.each + (size_t)bytes - 1) / bytes;
    int32_t tile = conv2d_tile(s->oh * s->ow, one, bytes, room > rows ? room - rows : 0, 1);
    return rows + tile * (int32_t)u.each;
}

/* More positions read the weights less often, up to what stays in the cache. */
static bool more_unfolded(Binder *b, const Spatial *s, const Mac *m, int32_t len, int scratch) {
    Unfolded u = unfolded(m, len);
    size_t all = (size_t)s->oh * (size_t)s->ow * u.each, least = u.each + u.row;
    size_t most = 4 * u.row + (all < FIRST_LEVEL_CACHE ? all : FIRST_LEVEL_CACHE);
    bind_grow(b, scratch, offsetof(qk_conv2d_q_params, room), least, u.each, most);
    return true;
}

static bool bind_quant(Binder *b, const Node *n, const OpCtx *c, const Spatial *s, int32_t group,
                       const Volume *v) {
    Mac m;
    int weights = -1, bias = -1, scratch[3], n_scratch = 0;
    int32_t moved = 0, wz_step;
    bool no_wz;
    int64_t terms = (int64_t)(s->ic / group) * s->kh * s->kw;
    if (mac_dynamic_refused(b, n, n->in[W]))
        return false;
    if (!mac_prepare(b, n->in[X], n->in[W], n->out[0], 0, (size_t)s->oc, terms, 1.0f, &m) ||
        !signed_weights(b, n, &m, &weights, &moved))
        return bind_in_double_as(b, n, m.why);
    if (!mac_bias(b, &m, op_in(c, B), 1, 1.0f, &bias))
        return bind_in_double_as(b, n, m.why);
    int wz = mac_weight_zp(b, &m, moved, &wz_step, &no_wz);
    bool depthwise = !v && is_depthwise(n->in[X]->type, n->in[W]->type);
    if (!no_wz && !depthwise && !offsets_fit(&m, terms))
        return bind_in_double_as(b, n, m.why);
    Beside beside = {bias, m.real, 1, -1};
    ConvOperands o = {weights, group, unfold_bytes(b, n), beside};
    if (m.wbits)
        o.weights = packed_small(b, &m, n->in[W], 0);
    else if (!no_wz)
        o.weights = packed_signed(b, &m, n->in[W], 0, &o.beside.zeros);
    if (!v && conv_last_fits(b, s, &m, &o))
        return conv_last_bind(b, n, s, &m, &o);
    int y = mac_output(b, n, &m), x = mac_input(b, n, &m);
    ElemType made = m.dynamic ? ELEM_FLOAT : bind_elem(n->out[0]);
    x = volume_images(b, n, v, x, m.dynamic ? ELEM_INT16 : bind_elem(n->in[X]), m.xz);
    if (x < 0)
        return false;
    int to = volume_result(b, v, y, made);
    MacBuffers at = {x, weights, bias, no_wz ? -1 : wz, to};
    if (depthwise) {
        qk_depthwise_q_params p = {WINDOW_PARAMS(s),  MAC_PARAMS(&m), .xz = m.xz,
                                   .ic = s->ic,       .oc = s->oc,    .has_wz = !no_wz,
                                   .wz_step = wz_step};
        int64_t line = s->ow + (int64_t)(s->kw - 1) * s->dw / s->sw;
        scratch[n_scratch++] = bind_scratch(b, m.expand, (size_t)(line * s->sw));
        scratch[n_scratch++] = bind_scratch(b, m.acc, (size_t)s->ow);
        if (m.wbits)
            scratch[n_scratch++] = bind_scratch(b, ELEM_INT8, (size_t)s->kh * (size_t)s->kw);
        return mac_call(b, n, &m, "depthwise_q", &p, sizeof p, at, n_scratch, scratch) &&
               mac_finish(b, n, &m, 1.0f, y);
    }
    int32_t len = s->ic / group * s->kh * s->kw;
    qk_conv2d_q_params p = {WINDOW_PARAMS(s), MAC_PARAMS(&m), .xz = m.xz,       .ic = s->ic,
                            .oc = s->oc,      .group = group, .has_wz = !no_wz, .wz_step = wz_step};
    p.room = unfold_room(s, &m, len, unfold_bytes(b, n));
    int room = bind_scratch(b, ELEM_UINT8, (size_t)p.room);
    return mac_call(b, n, &m, "conv2d_q", &p, sizeof p, at, 1, &room) &&
           more_unfolded(b, s, &m, len, room) && volume_store(b, n, v, to, y, made) &&
           mac_finish(b, n, &m, 1.0f, y);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ConvAttrs *a = c->attrs;
    Window win;
    Spatial s;
    if (!conv_window(c, &win) || !bind_spatial(b, n, &win, n->in[X]->type, n->out[0]->type, &s))
        return false;
    Volume volume, *v = NULL;
    if (win.n == 3) {
        volume = volume_of(&win, n->in[X]->type, n->out[0]->type, &s);
        v = &volume;
    }
    bind_macs(b, (int64_t)bind_count(n->out[0]) * (s.ic / a->group) * s.kh * s.kw);
    if (bind_any_quant(n) && mac_fits(n->in[X], n->in[W]))
        return bind_quant(b, n, c, &s, (int32_t)a->group, v);
    return bind_float(b, n, c, &s, (int32_t)a->group, v);
}

static bool take_pads(Node *n, const int64_t *before, const int64_t *after, float least) {
    (void)least;
    const ConvAttrs *a = n->typed;
    return op_window_grow(n, &a->w, before, after, NULL);
}

const OpDef op_Conv = {
    .domain = "",
    .name = "Conv",
    .family = FAMILY_CONVOLUTION,
    .attrs_size = sizeof(ConvAttrs),
    .attrs = conv_attrs,
    .verify = conv_verify,
    .infer = conv_infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_MAC,
              .data = 1u << X,
              .mac.weight = W,
              .mac.bias = B,
              .mac.takes_dynamic = true,
              .mac.computed_signed = true,
              .mac.weight_axis = weight_axis,
              .mac.sums = sums,
              .mac.terms = terms},
    .qop = {.domain = "", .op = "QLinearConv", .operands = "0* 1* y 2", .since = 10},
    .take_pads = take_pads,
    .bind = bind,
};
