//! kernel avgpool2d_q
//! template T=s8,u8,s16,u16
//! uses saturate round_ratio
// y = saturate(round_half_even(sum (x - xz) * sx / (sy * count)) + yz), rounded once; padding is
// real zero, count as in avgpool2d_f32. m is sx / sy times 2^shift (requant_pool prepares it).
// Works front to back: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, c, ih, iw] */
    int32_t oh, ow;                 /* output [n, c, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t pb, pr;                 /* pads at the bottom and right */
    int32_t count_include_pad;
    int32_t xz, yz, lo, hi, shift;
    int64_t m;
} qk_avgpool2d_q_params;

static void $NAME(const qk_avgpool2d_q_params *p, const $T *x, $T *y) {
    int32_t planes = p->n * p->c, b, oy, ox;
    for (b = 0; b < planes; b++, x += (ptrdiff_t)p->ih * p->iw)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow; ox++) {
                int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl, ky, kx, q = 0;
                int64_t padded = 0, inside = 0, sum = 0;
                for (ky = 0; ky < p->kh; ky++)
                    for (kx = 0; kx < p->kw; kx++) {
                        int32_t iy = y0 + ky * p->dh, ix = x0 + kx * p->dw;
                        padded += iy < p->ih + p->pb && ix < p->iw + p->pr;
                        if (iy >= 0 && iy < p->ih && ix >= 0 && ix < p->iw) {
                            sum += x[(ptrdiff_t)iy * p->iw + ix] - p->xz;
                            inside++;
                        }
                    }
                if (p->count_include_pad)
                    inside = padded;
                if (inside)
                    q = qk_round_ratio(sum * p->m, inside << p->shift);
                *y++ = ($T)qk_saturate(q + p->yz, p->lo, p->hi);
            }
}
