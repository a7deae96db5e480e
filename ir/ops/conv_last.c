/* See conv_last.h. */
#include "ir/ops/conv_last.h"
#include "ir/ops/overlay.h"

enum { MOST_TAPS = 64, MOST_ROWS = 16, MOST_SUMS = 128 }; /* of the kernels */

static bool is_depthwise(const Spatial *s, int32_t group) {
    return group > 1 && group == s->ic && s->oc == s->ic;
}

static bool is_const(Binder *b, int buffer) {
    return bind_buffer(b, buffer)->kind == BUF_CONST;
}

bool conv_last_fits(Binder *b, const Spatial *s, const Mac *m, const ConvOperands *o) {
    int32_t len = s->ic / o->group * s->kh * s->kw;
    if (o->weights < 0 || !is_const(b, o->weights) ||
        (o->beside.bias >= 0 && !is_const(b, o->beside.bias)))
        return false;
    if (is_depthwise(s, o->group))
        return packed_takes(m, &o->beside) && s->kh * s->kw <= MOST_TAPS;
    return packed_fits(b, m, o->group, s->oc / o->group, len, &o->beside);
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

/* Positions that are unfolded at a time, at least: as many as are multiplied together, and one of
 * 16 bits. */
static int32_t least_rows(const Spatial *s) {
    int64_t most = (int64_t)s->oh * s->ow;
    return most < 2 ? 2 : most < 8 ? (int32_t)most : 8;
}

/* Of one kept row: what the last position reads, and 15 elements that copying may write past it. */
static int64_t row_bytes(const Spatial *s) {
    int64_t columns = (int64_t)(s->ow - 1) * s->sw + s->kw;
    return (2 * (columns * s->ic + 15) + 15) / 16 * 16;
}

/* Whether to keep rows of input instead of unfolding: where positions of a row share what they
 * read, a row is long enough to pay for reading the weights, and they do not make the arena larger,
 * as unfolding can do with less: there is room, or they are little beside the input, over which the
 * result may lie. */
static bool by_rows(Binder *b, const Node *n, const Spatial *s, const ConvOperands *o) {
    int64_t weights = (int64_t)s->oc * s->ic * s->kh * s->kw, rows = s->kh * row_bytes(s);
    return o->group == 1 && (o->beside.zeros < 0 || s->ow <= MOST_SUMS) && s->dh == 1 &&
           s->dw == 1 && s->kh > 1 && s->kh <= MOST_ROWS &&
           (s->ow >= 12 || (s->ow >= 6 && weights <= 16 * 1024)) && rows <= INT32_MAX / 2 &&
           (rows <= (int64_t)bind_room(b, n) ||
            (!bind_spares_scratch(b) && rows * 4 <= (int64_t)s->ih * s->iw * s->ic));
}

/* More positions read the weights less often, up to what stays in the cache; that counts most where
 * no cache holds the weights. */
static void bind_more_rows(Binder *b, const Spatial *s, int32_t steps, int scratch) {
    enum { FIRST_LEVEL_CACHE = 32 * 1024, LARGE_WEIGHTS = 1024 * 1024 };
    size_t one = 2 * 4 * (size_t)steps, all = ((size_t)s->oh * (size_t)s->ow + 7) / 8 * 4 * one;
    bind_grow(b, scratch, offsetof(qk_conv2d_nhwc_q_params, col_bytes), 32 + one, one,
              32 + (all < FIRST_LEVEL_CACHE ? all : FIRST_LEVEL_CACHE));
    if ((int64_t)s->oc * steps >= LARGE_WEIGHTS / 4)
        bind_keep(b, 32 + 4 * one < all ? 32 + 4 * one : all);
}

static bool bind_full(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                      const ConvOperands *o) {
    int32_t icg = s->ic / o->group, plane = s->kh * s->kw;
    const int8_t *w = bind_buffer(b, o->weights)->data;
    w = channels_inside(b, w, s->oc, icg, plane);
    int32_t segments = by_rows(b, n, s, o) ? s->kh : 1;
    Packed k = packed_bind(b, n, m, w, o->group, s->oc / o->group, segments, icg * plane / segments,
                           &o->beside);
    qk_conv2d_nhwc_q_params p = {WINDOW_PARAMS(s),  .ic = s->ic,          .oc = s->oc,
                                 .group = o->group, .segments = segments, .steps = k.steps,
                                 .xz = k.xz,        MAC_RESULT(m)};
    p.col_bytes = 32 + (segments > 1 ? s->kh * (int32_t)row_bytes(s) : least_rows(s) * 4 * k.steps);
    int x = bind_last(b, n, n->in[0]), y = bind_last(b, n, n->out[0]);
    int scratch = bind_scratch(b, ELEM_UINT8, (size_t)p.col_bytes);
    if (!packed_call(b, n, "conv2d_nhwc_q", m, &k, true, (int[]){x, y, scratch}, &p, sizeof p))
        return false;
    if (segments == 1)
        bind_more_rows(b, s, k.steps, scratch);
    if (segments > 1)
        bind_over(b, 0, lead_kept_rows(s, k.types[0], k.types[2]));
    else if (o->group == 1)
        bind_over(b, 0, lead_window(s, k.types[0], k.types[2], 0));
    return true;
}

static bool bind_depthwise(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                           const ConvOperands *o) {
    const int8_t *w = bind_buffer(b, o->weights)->data;
    Packed k = packed_depthwise(b, n, m, w, s->ic, s->kh * s->kw, &o->beside);
    qk_depthwise_nhwc_q_params p = {WINDOW_PARAMS(s), .c = s->ic, .xz = k.xz, MAC_RESULT(m)};
    int x = bind_last(b, n, n->in[0]), y = bind_last(b, n, n->out[0]);
    int pad = bind_scratch(b, k.types[0], (size_t)s->ic);
    if (!packed_call(b, n, "depthwise_nhwc_q", m, &k, true, (int[]){x, y, pad}, &p, sizeof p))
        return false;
    bind_over(b, 0, lead_window(s, k.types[0], k.types[2], 4)); /* four positions at a time */
    return true;
}

bool conv_last_bind(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                    const ConvOperands *o) {
    return is_depthwise(s, o->group) ? bind_depthwise(b, n, s, m, o) : bind_full(b, n, s, m, o);
}
