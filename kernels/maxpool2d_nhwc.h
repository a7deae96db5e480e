//! kernel maxpool2d_nhwc
//! template T=f32,s8,u8,s16,u16
// maxpool2d with channels last, [n, h, w, c]. Works front to back, each window is read
// while its result is written: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, ih, iw, c] */
    int32_t oh, ow;                 /* output [n, oh, ow, c] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
} qk_maxpool2d_nhwc_params;

static void $NAME(const qk_maxpool2d_nhwc_params *p, const $T *x, $T *y) {
    int32_t b, oy, ox, ky, kx, c, channels = p->c;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ih * p->iw * channels)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow; ox++, y += channels) {
                int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl;
                int32_t top = y0 < 0 ? (p->dh - 1 - y0) / p->dh : 0;
                int32_t left = x0 < 0 ? (p->dw - 1 - x0) / p->dw : 0;
                //! if T=f32
                int32_t any = 0;
                for (c = 0; c < channels; c++)
                    y[c] = -3.402823466e38f;
                //! else
                for (c = 0; c < channels; c++)
                    y[c] = $TMIN;
                //! end
                for (ky = top; ky < p->kh && y0 + ky * p->dh < p->ih; ky++)
                    for (kx = left; kx < p->kw && x0 + kx * p->dw < p->iw; kx++) {
                        const $T *in = x + ((ptrdiff_t)(y0 + ky * p->dh) * p->iw + x0 +
                                            (ptrdiff_t)kx * p->dw) * channels;
                        //! if T=f32
                        if (any && p->dh * p->dw > 1)
                            for (c = 0; c < channels; c++)
                                y[c] = in[c] > y[c] ? in[c] : y[c];
                        else if (any)
                            for (c = 0; c < channels; c++)
                                y[c] = y[c] > in[c] ? y[c] : in[c];
                        else
                            for (c = 0; c < channels; c++)
                                y[c] = in[c];
                        any = 1;
                        //! else
                        for (c = 0; c < channels; c++)
                            y[c] = ($T)(in[c] > y[c] ? in[c] : y[c]);
                        //! end
                    }
            }
}
