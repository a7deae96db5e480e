//! kernel avgpool2d_f32
//! also f64
// Mean over windows, NCHW (ONNX AveragePool; GlobalAveragePool with the whole plane as window). The
// divisor is the number of inputs in the window, or with count_include_pad also of the padding: of
// window positions inside the padded input, which ends at ih + pb and iw + pr.
// Works front to back: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, c, ih, iw] */
    int32_t oh, ow;                 /* output [n, c, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t pb, pr;                 /* pads at the bottom and right */
    int32_t count_include_pad;
} qk_avgpool2d_f32_params;

static void $NAME(const qk_avgpool2d_f32_params *p, const float *x, float *y) {
    int32_t planes = p->n * p->c, b, oy, ox;
    for (b = 0; b < planes; b++, x += (ptrdiff_t)p->ih * p->iw)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow; ox++) {
                int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl, ky, kx;
                int32_t padded = 0, inside = 0;
                float sum = 0.0f;
                for (ky = 0; ky < p->kh; ky++)
                    for (kx = 0; kx < p->kw; kx++) {
                        int32_t iy = y0 + ky * p->dh, ix = x0 + kx * p->dw;
                        padded += iy < p->ih + p->pb && ix < p->iw + p->pr;
                        if (iy >= 0 && iy < p->ih && ix >= 0 && ix < p->iw) {
                            sum += x[(ptrdiff_t)iy * p->iw + ix];
                            inside++;
                        }
                    }
                if (p->count_include_pad)
                    inside = padded;
                *y++ = inside ? sum / (float)inside : 0.0f;
            }
}
