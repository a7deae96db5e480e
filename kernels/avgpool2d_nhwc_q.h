//! kernel avgpool2d_nhwc_q
//! template T=s8,u8
//! uses saturate round_ratio
// avgpool2d_q with channels last, [n, h, w, c], on windows of at most 2^22 elements. Scratch: sum
// holds c elements. Works front to back, each window is read before its result is written: y may lie
// over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, ih, iw, c] */
    int32_t oh, ow;                 /* output [n, oh, ow, c] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t pb, pr;                 /* pads at the bottom and right */
    int32_t count_include_pad;
    int32_t xz, yz, lo, hi, shift;
    int64_t m;
} qk_avgpool2d_nhwc_q_params;

static void $NAME(const qk_avgpool2d_nhwc_q_params *p, const $T *x, $T *y, int32_t *sum) {
    int32_t b, oy, ox, ky, kx, c, channels = p->c, xz = p->xz;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ih * p->iw * channels)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow; ox++, y += channels) {
                int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl;
                int64_t padded = 0, inside = 0;
                for (c = 0; c < channels; c++)
                    sum[c] = 0;
                for (ky = 0; ky < p->kh; ky++)
                    for (kx = 0; kx < p->kw; kx++) {
                        int32_t iy = y0 + ky * p->dh, ix = x0 + kx * p->dw;
                        const $T *in = x;
                        padded += iy < p->ih + p->pb && ix < p->iw + p->pr;
                        if (iy < 0 || iy >= p->ih || ix < 0 || ix >= p->iw)
                            continue;
                        in += ((ptrdiff_t)iy * p->iw + ix) * channels;
                        for (c = 0; c < channels; c++)
                            sum[c] += in[c] - xz;
                        inside++;
                    }
                if (p->count_include_pad)
                    inside = padded;
                for (c = 0; c < channels; c++) {
                    int32_t q = inside ? qk_round_ratio(sum[c] * p->m, inside << p->shift) : 0;
                    y[c] = ($T)qk_saturate(q + p->yz, p->lo, p->hi);
                }
            }
}
