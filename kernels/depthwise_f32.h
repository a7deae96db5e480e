//! kernel depthwise_f32
//! also f64
// conv2d_f32 with one input channel per output channel (group == ic, oc a multiple of ic). Weights
// [oc, 1, kh, kw].
// With oc = ic it works front to back, one
// row of results being begun before its windows are read: y may lie over x.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ic, ih, iw] */
    int32_t oc, oh, ow;             /* output [n, oc, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t has_bias;               /* else bias is not read */
} qk_depthwise_f32_params;

/* out[i] += row[i * sw] * w for first <= i < end */
static void $NAME_tap(const float *row, int32_t sw, float w, int32_t first, int32_t end,
                      float *out) {
    int32_t i;
    if (sw == 1)
        for (i = first; i < end; i++)
            out[i] += row[i] * w;
    else if (sw == 2)
        for (i = first; i < end; i++)
            out[i] += row[2 * i] * w;
    else
        for (i = first; i < end; i++)
            out[i] += row[(ptrdiff_t)i * sw] * w;
}

/* One output row. For a tap at offset x0 = kx * dw - pl, column i reads x0 + i * sw. */
static void $NAME_row(const qk_depthwise_f32_params *p, const float *plane, const float *w,
                      int32_t oy, float *out) {
    int32_t ky, kx;
    for (ky = 0; ky < p->kh; ky++) {
        int32_t iy = oy * p->sh - p->pt + ky * p->dh;
        if (iy < 0 || iy >= p->ih)
            continue;
        for (kx = 0; kx < p->kw; kx++) {
            int32_t x0 = kx * p->dw - p->pl, rest = p->iw - x0;
            int32_t first = x0 < 0 ? (p->sw - 1 - x0) / p->sw : 0;
            int32_t end = rest <= 0 ? 0 : (rest - 1) / p->sw + 1;
            if (end > p->ow)
                end = p->ow;
            $NAME_tap(plane + (ptrdiff_t)iy * p->iw + x0, p->sw, w[ky * p->kw + kx], first, end,
                      out);
        }
    }
}

static void $NAME(const qk_depthwise_f32_params *p, const float *x, const float *w,
                  const float *bias, float *y) {
    int32_t ow = p->ow, b, o, oy, i;
    for (b = 0; b < p->n; b++)
        for (o = 0; o < p->oc; o++)
            for (oy = 0; oy < p->oh; oy++, y += p->ow) {
                int32_t c = o / (p->oc / p->ic);
                float add = p->has_bias ? bias[o] : 0.0f;
                for (i = 0; i < ow; i++)
                    y[i] = add;
                $NAME_row(p, x + ((ptrdiff_t)b * p->ic + c) * p->ih * p->iw,
                          w + (ptrdiff_t)o * p->kh * p->kw, oy, y);
            }
}
