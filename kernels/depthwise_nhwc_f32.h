//! kernel depthwise_nhwc_f32
//! uses depthwise_float_floats depthwise_float_floats4
// depthwise_f32 with channels last and oc = ic, and what Relu or Clip behind it do,
// y = min(max(y, lo), hi). Weights [kh][kw][c]. Works front to back, the windows of up to eight
// positions of a row are read before their results are written: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, ih, iw, c] */
    int32_t oh, ow;                 /* output [n, oh, ow, c] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t clamped;                /* else lo and hi are not read */
    float lo, hi;
} qk_depthwise_nhwc_f32_params;

/* `count` positions from column ox of a row on, all with taps [rows][columns] inside, of which the
 * first are x and w. */
static void $NAME_some(const qk_depthwise_nhwc_f32_params *p, const float *x, const float *w,
                       int32_t rows, int32_t columns, const float *bias, int32_t count, float *y) {
    ptrdiff_t down = (ptrdiff_t)p->dh * p->iw * p->c, across = (ptrdiff_t)p->dw * p->c;
    int32_t whole = 0, c, r, i, j;
#if defined(QK_FLOATS)
    ptrdiff_t step = (ptrdiff_t)p->sw * p->c, below = (ptrdiff_t)p->kw * p->c;
    qk_taps_floats t = {rows, columns, step, down, across, below, p->c};
    qk_taps_floats4 t4 = {rows, columns, step, down, across, below, p->c};
    for (c = 0; c + QK_LANES <= p->c; c += QK_LANES)
        qk_tap_tile_floats(&t, x + c, w + c, bias + c, count, y + c);
    for (i = c / 4; i < p->c / 4; i++) { /* a bound that compilers see */
        ptrdiff_t at = 4 * (ptrdiff_t)i;
        qk_tap_tile_floats4(&t4, x + at, w + at, bias + at, count, y + at);
    }
    whole = p->c / 4 * 4;
#endif
    for (c = whole; c < p->c; c++)
        for (r = 0; r < count; r++) {
            const float *u = x + ((ptrdiff_t)r * p->sw * p->c + c), *v = w + c;
            float sum = bias[c];
            for (i = 0; i < rows; i++, u += down, v += (ptrdiff_t)p->kw * p->c)
                for (j = 0; j < columns; j++)
                    sum += u[j * across] * v[(ptrdiff_t)j * p->c];
            y[(ptrdiff_t)r * p->c + c] = sum;
        }
    for (i = 0; p->clamped && i < count * p->c; i++)
        y[i] = y[i] < p->lo ? p->lo : y[i] > p->hi ? p->hi : y[i];
}

/* One row of results; taps from `w` on in `rows` rows of x are inside. */
static void $NAME_row(const qk_depthwise_nhwc_f32_params *p, const float *x, const float *w,
                      int32_t rows, const float *bias, float *y) {
    int32_t ox, count, reach = (p->kw - 1) * p->dw;
    for (ox = 0; ox < p->ow; ox += count) {
        int32_t x0 = ox * p->sw - p->pl, from = 0, to = p->kw, left;
        while (from < to && x0 + from * p->dw < 0)
            from++;
        while (from < to && x0 + (to - 1) * p->dw >= p->iw)
            to--;
        count = 1;
        if (to - from == p->kw) { /* so have those up to where a window reaches the end */
            left = (p->iw - 1 - reach - x0) / p->sw + 1;
            left = left < p->ow - ox ? left : p->ow - ox;
            count = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        }
        $NAME_some(p, x + (x0 + (ptrdiff_t)from * p->dw) * p->c, w + (ptrdiff_t)from * p->c, rows,
                   to - from, bias, count, y);
        y += (ptrdiff_t)count * p->c;
    }
}

static void $NAME(const qk_depthwise_nhwc_f32_params *p, const float *x, const float *w,
                  const float *bias, float *y) {
    int32_t b, oy;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ih * p->iw * p->c)
        for (oy = 0; oy < p->oh; oy++, y += (ptrdiff_t)p->ow * p->c) {
            int32_t iy = oy * p->sh - p->pt, ky = iy < 0 ? (p->dh - 1 - iy) / p->dh : 0;
            int32_t rows = iy < p->ih ? (p->ih - 1 - iy) / p->dh + 1 : 0;
            rows = (rows < p->kh ? rows : p->kh) - ky;
            $NAME_row(p, x + ((ptrdiff_t)iy + (ptrdiff_t)ky * p->dh) * p->iw * p->c,
                      w + (ptrdiff_t)ky * p->kw * p->c, rows, bias, y);
        }
}
