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

/* Eight results side by side, `sw` input columns apart, whose windows lie inside the input; `at`
 * is where the first of them begins. */
static void $NAME_eight(const qk_depthwise_f32_params *p, const float *at, int32_t sw,
                        const float *w, int32_t rows, float add, float *out) {
    float s[8];
    int32_t ky, kx, l;
    for (l = 0; l < 8; l++)
        s[l] = add;
    for (ky = 0; ky < rows; ky++, at += (ptrdiff_t)p->dh * p->iw, w += p->kw)
        for (kx = 0; kx < p->kw; kx++) {
            const float *u = at + (ptrdiff_t)kx * p->dw;
            for (l = 0; l < 8; l++)
                s[l] += u[(ptrdiff_t)l * sw] * w[kx];
        }
    for (l = 0; l < 8; l++)
        out[l] = s[l];
}

/* Results from `first` on up to `end` whose windows reach out of the input or are few; `row` is
 * column 0 of their first row of taps. */
static void $NAME_each(const qk_depthwise_f32_params *p, const float *row, const float *w,
                       int32_t rows, float add, int32_t first, int32_t end, float *y) {
    int32_t i, ky, kx;
    for (i = first; i < end; i++) {
        int32_t x0 = i * p->sw - p->pl, from = 0, to = p->kw;
        const float *u = row, *v = w;
        float s = add;
        while (from < to && x0 + from * p->dw < 0)
            from++;
        while (from < to && x0 + (to - 1) * p->dw >= p->iw)
            to--;
        for (ky = 0; ky < rows; ky++, u += (ptrdiff_t)p->dh * p->iw, v += p->kw)
            for (kx = from; kx < to; kx++)
                s += u[x0 + (ptrdiff_t)kx * p->dw] * v[kx];
        y[i] = s;
    }
}

/* One output row. */
static void $NAME_row(const qk_depthwise_f32_params *p, const float *plane, const float *w,
                      int32_t oy, float add, float *y) {
    int32_t iy = oy * p->sh - p->pt, ky = iy < 0 ? (p->dh - 1 - iy) / p->dh : 0, i;
    int32_t rows = iy < p->ih ? (p->ih - 1 - iy) / p->dh + 1 : 0, reach = (p->kw - 1) * p->dw;
    int32_t from = (p->pl + p->sw - 1) / p->sw; /* windows up to `to` lie inside the row */
    int32_t to = p->iw + p->pl > reach ? (p->iw + p->pl - reach - 1) / p->sw + 1 : 0;
    const float *row = plane + ((ptrdiff_t)iy + (ptrdiff_t)ky * p->dh) * p->iw;
    rows = (rows < p->kh ? rows : p->kh) - ky;
    w += (ptrdiff_t)ky * p->kw;
    to = to < p->ow ? to : p->ow;
    if (to - from < 8) {
        $NAME_each(p, row, w, rows, add, 0, p->ow, y);
        return;
    }
    $NAME_each(p, row, w, rows, add, 0, from, y);
    for (i = from; i < to; i += 8) {
        const float *at;
        i = i < to - 8 ? i : to - 8; /* the last eight reach back */
        at = row + ((ptrdiff_t)i * p->sw - p->pl);
        if (p->sw == 1)
            $NAME_eight(p, at, 1, w, rows, add, y + i);
        else if (p->sw == 2)
            $NAME_eight(p, at, 2, w, rows, add, y + i);
        else
            $NAME_eight(p, at, p->sw, w, rows, add, y + i);
    }
    $NAME_each(p, row, w, rows, add, to, p->ow, y);
}

static void $NAME(const qk_depthwise_f32_params *p, const float *x, const float *w,
                  const float *bias, float *y) {
    int32_t b, o, oy;
    for (b = 0; b < p->n; b++)
        for (o = 0; o < p->oc; o++)
            for (oy = 0; oy < p->oh; oy++, y += p->ow) {
                int32_t c = o / (p->oc / p->ic);
                $NAME_row(p, x + ((ptrdiff_t)b * p->ic + c) * p->ih * p->iw,
                          w + (ptrdiff_t)o * p->kh * p->kw, oy, p->has_bias ? bias[o] : 0.0f, y);
            }
}
