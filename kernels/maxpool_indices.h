//! kernel maxpool_indices
//! template T=f32,s8,u8,s16,u16,s32,u32
// Maximum over windows, NCDHW, and where in x it first stands (ONNX MaxPool with both outputs; 2-D
// with depth 1): counted row by row, or with column_major the other way within a volume. Padding
// never wins; a window without input gives the lowest value and index 0. NaN as in maxpool2d.
typedef struct {
    int32_t n, c, id, ih, iw;                   /* input [n, c, id, ih, iw] */
    int32_t od, oh, ow;                         /* output [n, c, od, oh, ow] */
    int32_t kd, kh, kw, sd, sh, sw, dd, dh, dw; /* kernel, strides, dilations */
    int32_t pf, pt, pl;                         /* pads at the front, top and left */
    int32_t column_major;
} qk_maxpool_indices_params;

/* The maximum of the window at (z0, y0, x0) of one volume; its place, or -1 where it has none. */
static $T $NAME_window(const qk_maxpool_indices_params *p, const $T *x, int32_t z0, int32_t y0,
                       int32_t x0, int64_t *at) {
    //! if T=f32
    $T best = -3.402823466e38f;
    //! else
    $T best = $TMIN;
    //! end
    int32_t kz, ky, kx;
    *at = -1;
    for (kz = 0; kz < p->kd; kz++)
        for (ky = 0; ky < p->kh; ky++)
            for (kx = 0; kx < p->kw; kx++) {
                int32_t iz = z0 + kz * p->dd, iy = y0 + ky * p->dh, ix = x0 + kx * p->dw;
                $T v;
                if (iz < 0 || iz >= p->id || iy < 0 || iy >= p->ih || ix < 0 || ix >= p->iw)
                    continue;
                v = x[((ptrdiff_t)iz * p->ih + iy) * p->iw + ix];
                if (*at >= 0 && !(v > best))
                    continue;
                best = v;
                *at = p->column_major ? ((int64_t)ix * p->ih + iy) * p->id + iz
                                      : ((int64_t)iz * p->ih + iy) * p->iw + ix;
            }
    return best;
}

static void $NAME(const qk_maxpool_indices_params *p, const $T *x, $T *y, int64_t *indices) {
    int32_t volumes = p->n * p->c, b, oz, oy, ox;
    int64_t size = (int64_t)p->id * p->ih * p->iw, at;
    for (b = 0; b < volumes; b++)
        for (oz = 0; oz < p->od; oz++)
            for (oy = 0; oy < p->oh; oy++)
                for (ox = 0; ox < p->ow; ox++) {
                    *y++ = $NAME_window(p, x + (ptrdiff_t)(b * size), oz * p->sd - p->pf,
                                        oy * p->sh - p->pt, ox * p->sw - p->pl, &at);
                    *indices++ = at < 0 ? 0 : b * size + at;
                }
}
