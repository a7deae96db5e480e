//! kernel avgpool2d_nhwc_f32
// avgpool2d_f32 with channels last, [n, h, w, c]. Works front to back, each window is read while its
// result is written: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, ih, iw, c] */
    int32_t oh, ow;                 /* output [n, oh, ow, c] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t pb, pr;                 /* pads at the bottom and right */
    int32_t count_include_pad;
} qk_avgpool2d_nhwc_f32_params;

static void $NAME(const qk_avgpool2d_nhwc_f32_params *p, const float *x, float *y) {
    int32_t b, oy, ox, ky, kx, c, channels = p->c;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ih * p->iw * channels)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow; ox++, y += channels) {
                int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl;
                int32_t padded = 0, inside = 0;
                for (c = 0; c < channels; c++)
                    y[c] = 0.0f;
                for (ky = 0; ky < p->kh; ky++)
                    for (kx = 0; kx < p->kw; kx++) {
                        int32_t iy = y0 + ky * p->dh, ix = x0 + kx * p->dw;
                        padded += iy < p->ih + p->pb && ix < p->iw + p->pr;
                        if (iy >= 0 && iy < p->ih && ix >= 0 && ix < p->iw) {
                            const float *in = x + ((ptrdiff_t)iy * p->iw + ix) * channels;
                            for (c = 0; c < channels; c++)
                                y[c] += in[c];
                            inside++;
                        }
                    }
                if (p->count_include_pad)
                    inside = padded;
                for (c = 0; c < channels; c++)
                    y[c] = inside ? y[c] / (float)inside : 0.0f;
            }
}
