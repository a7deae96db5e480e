/* See conv_last.h. */
#include "ir/ops/conv_last.h"

enum { MOST_TAPS = 64, MOST_ROWS = 16 }; /* of the kernels */

static bool is_depthwise(const Spatial *s, int32_t group) {
    return group > 1 && group == s->ic && s->oc == s->ic;
}

static bool is_const(Binder *b, int buffer) {
    return binder_program(b)->buffers[buffer].kind == BUF_CONST;
}

bool conv_last_fits(Binder *b, const Spatial *s, const Mac *m, const ConvOperands *o) {
    int32_t len = s->ic / o->group * s->kh * s->kw;
    if (elem_bits(m->types[0]) != 8 || m->types[1] != ELEM_INT8 || m->wbits || m->dynamic)
        return false;
    if (!is_const(b, o->weights) || (o->bias >= 0 && !is_const(b, o->bias)))
        return false;
    if (is_depthwise(s, o->group))
        return s->kh * s->kw <= MOST_TAPS;
    return packed_fits(b, m, o->group, s->oc / o->group, len, o->bias);
}

/* [oc][ic][kh][kw] to [oc][kh][kw][ic]. */
static int8_t *channels_inside(Binder *b, const int8_t *w, int32_t oc, int32_t ic, int32_t plane) {
    int8_t *out = NEW_ARRAY(binder_arena(b), int8_t, (size_t)oc *(size_t)ic *(size_t)plane);
    for (int32_t o = 0; o < oc; o++)
        for (int32_t c = 0; c < ic; c++)
            for (int32_t k = 0; k < plane; k++)
                out[((size_t)o * (size_t)plane + (size_t)k) * (size_t)ic + (size_t)c] =
                    w[((size_t)o * (size_t)ic + (size_t)c) * (size_t)plane + (size_t)k];
    return out;
}

static int32_t unfold_rows(const Spatial *s, int32_t steps, int32_t bytes) {
    int64_t fit = bytes / (4 * (int64_t)steps), most = (int64_t)s->oh * s->ow;
    fit = fit > most ? most : fit;
    if (most < 8)
        return most < 2 ? 2 : (int32_t)most; /* at least one row of 16 bits */
    return fit < 8 ? 8 : (int32_t)(fit + 7) / 8 * 8;
}

/* Of one kept row: what the last position reads, and 15 elements that copying may write past it. */
static int64_t row_bytes(const Spatial *s) {
    int64_t columns = (int64_t)(s->ow - 1) * s->sw + s->kw;
    return (2 * (columns * s->ic + 15) + 15) / 16 * 16;
}

/* Whether to keep rows of input instead of unfolding: where positions of a row share what they
 * read, and a row is long enough to pay for reading the weights. */
static bool by_rows(const Spatial *s, const ConvOperands *o) {
    int64_t weights = (int64_t)s->oc * s->ic * s->kh * s->kw;
    return o->group == 1 && s->dh == 1 && s->dw == 1 && s->kh > 1 && s->kh <= MOST_ROWS &&
           (s->ow >= 12 || (s->ow >= 6 && weights <= 16 * 1024)) &&
           s->kh * row_bytes(s) <= INT32_MAX / 2;
}

static bool bind_full(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                      const ConvOperands *o) {
    int32_t icg = s->ic / o->group, plane = s->kh * s->kw;
    const int8_t *w = binder_program(b)->buffers[o->weights].data;
    w = channels_inside(b, w, s->oc, icg, plane);
    int32_t segments = by_rows(s, o) ? s->kh : 1;
    Packed k =
        packed_bind(b, m, w, o->group, s->oc / o->group, segments, icg * plane / segments, o->bias);
    qk_conv2d_nhwc_q_params p = {
        WINDOW_PARAMS(s), .ic = s->ic, .oc = s->oc, .group = o->group, .segments = segments,
        .steps = k.steps, .xz = k.xz,  .yz = m->yz, .lo = m->lo,       .hi = m->hi};
    p.col_bytes = 32 + (segments > 1 ? s->kh * (int32_t)row_bytes(s)
                                     : unfold_rows(s, k.steps, o->unfold_bytes) * 4 * k.steps);
    int x = bind_last(b, n, n->in[0]), y = bind_last(b, n, n->out[0]);
    int scratch = bind_scratch(b, ELEM_UINT8, (size_t)p.col_bytes);
    return packed_call(b, n, "conv2d_nhwc_q", m, &k, x, y, scratch, &p, sizeof p);
}

static bool bind_depthwise(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                           const ConvOperands *o) {
    const int8_t *w = binder_program(b)->buffers[o->weights].data;
    Packed k = packed_depthwise(b, m, w, s->ic, s->kh * s->kw, o->bias);
    qk_depthwise_nhwc_q_params p = {WINDOW_PARAMS(s), .c = s->ic,  .xz = k.xz,
                                    .yz = m->yz,      .lo = m->lo, .hi = m->hi};
    int x = bind_last(b, n, n->in[0]), y = bind_last(b, n, n->out[0]);
    int pad = bind_scratch(b, m->types[0], (size_t)s->ic);
    return packed_call(b, n, "depthwise_nhwc_q", m, &k, x, y, pad, &p, sizeof p);
}

bool conv_last_bind(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                    const ConvOperands *o) {
    return is_depthwise(s, o->group) ? bind_depthwise(b, n, s, m, o) : bind_full(b, n, s, m, o);
}
