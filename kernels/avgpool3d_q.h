//! kernel avgpool3d_q
//! template T=s8,u8,s16,u16
//! uses saturate round_ratio
// As avgpool2d_q on [n, c, d, h, w].
typedef struct {
    int32_t planes, id, ih, iw;                 /* input [planes, id, ih, iw] */
    int32_t od, oh, ow;                         /* output [planes, od, oh, ow] */
    int32_t kd, kh, kw, sd, sh, sw, dd, dh, dw; /* kernel, strides, dilations */
    int32_t pf, pt, pl;                         /* pads at the front, top and left */
    int32_t pk, pb, pr;                         /* pads at the back, bottom and right */
    int32_t count_include_pad;
    int32_t xz, yz, lo, hi, shift;
    int64_t m;
} qk_avgpool3d_q_params;

/* The average of the window at (z0, y0, x0) of one volume, in steps of the result. */
static int32_t $NAME_window(const qk_avgpool3d_q_params *p, const $T *x, int32_t z0, int32_t y0, int32_t x0) {
    int64_t padded = 0, inside = 0, sum = 0;
    int32_t kz, ky, kx;
    for (kz = 0; kz < p->kd; kz++)
        for (ky = 0; ky < p->kh; ky++)
            for (kx = 0; kx < p->kw; kx++) {
                int32_t iz = z0 + kz * p->dd, iy = y0 + ky * p->dh, ix = x0 + kx * p->dw;
                padded += iz < p->id + p->pk && iy < p->ih + p->pb && ix < p->iw + p->pr;
                if (iz >= 0 && iz < p->id && iy >= 0 && iy < p->ih && ix >= 0 && ix < p->iw) {
                    sum += x[((ptrdiff_t)iz * p->ih + iy) * p->iw + ix] - p->xz;
                    inside++;
                }
            }
    if (p->count_include_pad)
        inside = padded;
    return inside ? qk_round_ratio(sum * p->m, inside << p->shift) : 0;
}

static void $NAME(const qk_avgpool3d_q_params *p, const $T *x, $T *y) {
    int32_t b, oz, oy, ox;
    for (b = 0; b < p->planes; b++, x += (ptrdiff_t)p->id * p->ih * p->iw)
        for (oz = 0; oz < p->od; oz++)
            for (oy = 0; oy < p->oh; oy++)
                for (ox = 0; ox < p->ow; ox++) {
                    int32_t q = $NAME_window(p, x, oz * p->sd - p->pf, oy * p->sh - p->pt, ox * p->sw - p->pl);
                    *y++ = ($T)qk_saturate(q + p->yz, p->lo, p->hi);
                }
}
