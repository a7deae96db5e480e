/* See convtranspose_last.h. An output at y, with what was cut off y + pt = q * sh + r, is of phase
 * r and reads input q - j with weight r + j * sh, for each j for which there is one. So the window
 * ends at q, and the position t of it has weight r + (window - 1 - t) * sh. */
#include "ir/ops/convtranspose_last.h"

static int32_t windows(int32_t kernel, int32_t stride) {
    return (kernel + stride - 1) / stride;
}

bool convtranspose_last_fits(Binder *b, const Spatial *s, const Mac *m, int32_t group, int weights,
                             const Beside *o) {
    int64_t taps = (int64_t)windows(s->kh, s->sh) * windows(s->kw, s->sw);
    int64_t phases = (int64_t)s->sh * s->sw;
    if (group != 1 || s->dh != 1 || s->dw != 1 || m->wbits || m->raw || m->dynamic || phases > 64 ||
        phases * taps > 2 * (int64_t)s->kh * s->kw || taps * s->ic > INT32_MAX / 64 ||
        bind_buffer(b, weights)->kind != BUF_CONST)
        return false;
    return packed_fits(b, m, (int32_t)phases, s->oc, (int32_t)taps * s->ic, o);
}

/* Weights [ic][oc][kh][kw] as columns [sh][sw][oc] of k elements each: [window][window][ic]. */
static int8_t *columns_of_phases(Binder *b, const int8_t *w, const Spatial *s) {
    int32_t th = windows(s->kh, s->sh), tw = windows(s->kw, s->sw);
    size_t k = (size_t)th * (size_t)tw * (size_t)s->ic;
    int8_t *out =
        NEW_ARRAY(binder_arena(b), int8_t, (size_t)s->sh *(size_t)s->sw *(size_t)s->oc *k);
    for (int32_t i = 0; i < s->ic; i++)
        for (int32_t o = 0; o < s->oc; o++)
            for (int32_t y = 0; y < s->kh; y++)
                for (int32_t x = 0; x < s->kw; x++, w++) {
                    int32_t column = (y % s->sh * s->sw + x % s->sw) * s->oc + o;
                    int32_t tap = (th - 1 - y / s->sh) * tw + tw - 1 - x / s->sw;
                    out[(size_t)column * k + (size_t)tap * (size_t)s->ic + (size_t)i] = *w;
                }
    return out;
}

/* A table with an entry for each channel, once for each phase. */
static int for_phases(Binder *b, int table, int32_t phases, int32_t channels) {
    Buffer from = *bind_buffer(b, table);
    const int32_t *in = bind_data(b, table);
    int32_t *out = NEW_ARRAY(binder_arena(b), int32_t, (size_t)phases *(size_t)channels);
    for (int32_t i = 0; i < phases * channels; i++)
        out[i] = in[i % channels];
    return bind_const(b, from.elem, (size_t)phases * (size_t)channels, out, from.comment);
}

bool convtranspose_last_bind(Binder *b, const Node *n, const Spatial *s, const Mac *m, int weights,
                             Beside o) {
    enum { FIRST_LEVEL_CACHE = 32 * 1024, LEAST = 2 };
    int32_t phases = s->sh * s->sw, th = windows(s->kh, s->sh), tw = windows(s->kw, s->sw);
    const int8_t *w = columns_of_phases(b, bind_buffer(b, weights)->data, s);
    Mac repeated = *m;
    for (int i = 0; m->m_step && i < m->n_out_args; i++)
        repeated.out_args[i] = for_phases(b, m->out_args[i], phases, s->oc);
    o.bias = o.bias < 0 ? -1 : for_phases(b, o.bias, phases, s->oc);
    Packed k = packed_bind(b, n, &repeated, w, phases, s->oc, 1, th * tw * s->ic, &o);
    qk_convtranspose_nhwc_q_params p = {.n = s->n,
                                        .ic = s->ic,
                                        .ih = s->ih,
                                        .iw = s->iw,
                                        .oc = s->oc,
                                        .oh = s->oh,
                                        .ow = s->ow,
                                        .kh = th,
                                        .kw = tw,
                                        .sh = s->sh,
                                        .sw = s->sw,
                                        .pt = s->pt,
                                        .pl = s->pl,
                                        .xz = k.xz,
                                        MAC_RESULT(m)};
    size_t one = 2 * 4 * (size_t)k.steps;
    size_t row = ((size_t)(s->ow + s->pl) / (size_t)s->sw + 8) / 8 * 8 * one;
    p.steps = k.steps;
    p.col_bytes = (int32_t)(32 + LEAST * one);
    int x = bind_last(b, n, n->in[0]), y = bind_last(b, n, n->out[0]);
    int scratch = bind_scratch(b, ELEM_UINT8, (size_t)p.col_bytes);
    if (!packed_call(b, n, "convtranspose_nhwc_q", &repeated, &k, false, (int[]){x, y, scratch}, &p,
                     sizeof p))
        return false;
    if (row < LEAST * one)
        row = LEAST * one;
    bind_grow(b, scratch, offsetof(qk_convtranspose_nhwc_q_params, col_bytes), 32 + one, one,
              32 + (row < FIRST_LEVEL_CACHE       ? row
                    : one * 8 > FIRST_LEVEL_CACHE ? one * 8
                                                  : FIRST_LEVEL_CACHE));
    return true;
}
