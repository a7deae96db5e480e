//! kernel maxpool2d
//! template T=f32,s8,u8,s16,u16,s32,u32
// Maximum over windows, NCHW; padding never wins (ONNX MaxPool, first output). Works on the
// integers of any quantized tensor with a positive scale. NaN: comparisons with it are false, so it
// survives only in first position. A window without input gives the lowest value.
// Works front to back: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, c, ih, iw] */
    int32_t oh, ow;                 /* output [n, c, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
} qk_maxpool2d_params;

static void $NAME(const qk_maxpool2d_params *p, const $T *x, $T *y) {
    int32_t planes = p->n * p->c, b, oy, ox;
    for (b = 0; b < planes; b++, x += (ptrdiff_t)p->ih * p->iw)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow; ox++) {
                int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl, ky, kx;
                int32_t top = y0 < 0 ? (p->dh - 1 - y0) / p->dh : 0;
                int32_t left = x0 < 0 ? (p->dw - 1 - x0) / p->dw : 0;
                //! if T=f32
                $T best = 0;
                int32_t any = 0;
                //! else
                $T best = $TMIN;
                //! end
                for (ky = top; ky < p->kh && y0 + ky * p->dh < p->ih; ky++)
                    for (kx = left; kx < p->kw && x0 + kx * p->dw < p->iw; kx++) {
                        $T v = x[(ptrdiff_t)(y0 + ky * p->dh) * p->iw + x0 + kx * p->dw];
                        //! if T=f32
                        if (!any || (p->dh * p->dw > 1 ? v > best : !(best > v)))
                            best = v;
                        any = 1;
                        //! else
                        if (v > best)
                            best = v;
                        //! end
                    }
                //! if T=f32
                *y++ = any ? best : -3.402823466e38f;
                //! else
                *y++ = best;
                //! end
            }
}
