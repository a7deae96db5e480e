//! kernel conv2d_f32
//! also f64
//! uses tile_f32
// 2-D convolution, NCHW, weights [oc, ic / group, kh, kw] (ONNX Conv; 1-D with height 1). Pads at
// the end follow from oh and ow. The input is unfolded `tile` positions at a time, a multiple of
// 16: col holds tile * ic / group * kh * kw elements. With tile 0, for few positions, it is read as it
// lies, and col is nothing.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ic, ih, iw] */
    int32_t oc, oh, ow;             /* output [n, oc, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t group, tile;
    int32_t has_bias; /* else bias is not read */
} qk_conv2d_f32_params;

/* One row of the unfolded tile: the input under one kernel element at `count` output positions from
 * (oy, ox) on, followed by zeros. */
static void $NAME_unfold(const qk_conv2d_f32_params *p, const float *plane, int32_t ky, int32_t kx,
                         int32_t oy, int32_t ox, int32_t count, float *row) {
    int32_t i = 0, run, k;
    for (; i < count; i += run, ox = 0, oy++, row += run) {
        int32_t iy = oy * p->sh - p->pt + ky * p->dh, x0 = kx * p->dw - p->pl + ox * p->sw;
        int32_t from = x0 < 0 ? -x0 : 0, end = iy >= 0 && iy < p->ih && x0 < p->iw ? p->iw - x0 : 0;
        const float *src = plane + ((ptrdiff_t)iy * p->iw + x0);
        run = p->ow - ox < count - i ? p->ow - ox : count - i;
        if (p->sw > 1) {
            from = (from + p->sw - 1) / p->sw;
            end = (end + p->sw - 1) / p->sw;
        }
        end = end < run ? end : run; /* columns from `from` up to it are inside the input */
        from = from < end ? from : end;
        for (k = 0; k < from; k++)
            row[k] = 0.0f;
        if (p->sw == 1)
            for (k = from; k < end; k++)
                row[k] = src[k];
        else
            for (k = from; k < end; k++)
                row[k] = src[(ptrdiff_t)k * p->sw];
        for (k = end; k < run; k++)
            row[k] = 0.0f;
    }
    for (; i < p->tile; i++)
        *row++ = 0.0f;
}

/* The products of one position, whose window begins at (y0, x0), with the weights of one channel,
 * summed as qk_tile_f32 sums them. */
static float $NAME_sum(const qk_conv2d_f32_params *p, const float *x, int32_t icg, int32_t y0,
                       int32_t x0, const float *w) {
    float sum = 0.0f, lost = 0.0f, part = 0.0f;
    int32_t taps = p->kh * p->kw, len = icg * taps, k;
    for (k = 0; k < len; k++) {
        int32_t t = k % taps, iy = y0 + t / p->kw * p->dh, ix = x0 + t % p->kw * p->dw;
        int32_t inside = iy >= 0 && iy < p->ih && ix >= 0 && ix < p->iw;
        const float *plane = x + (ptrdiff_t)(k / taps) * p->ih * p->iw;
        part += w[k] * (inside ? plane[(ptrdiff_t)iy * p->iw + ix] : 0.0f);
        if (k % 16 == 15 || k == len - 1) {
            float add = part - lost, all = sum + add;
            lost = (all - sum) - add;
            lost = lost != lost ? 0.0f : lost; /* infinities have no rounding error */
            sum = all;
            part = 0.0f;
        }
    }
    return sum;
}

static void $NAME_direct(const qk_conv2d_f32_params *p, const float *x, const float *w,
                         const float *bias, float *y) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, len = icg * p->kh * p->kw, b, o, i, j;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ic * p->ih * p->iw)
        for (o = 0; o < p->oc; o++)
            for (i = 0; i < p->oh; i++)
                for (j = 0; j < p->ow; j++)
                    *y++ = $NAME_sum(p, x + (ptrdiff_t)(o / ocg) * icg * p->ih * p->iw, icg,
                                     i * p->sh - p->pt, j * p->sw - p->pl, w + (ptrdiff_t)o * len) +
                           (p->has_bias ? bias[o] : 0.0f);
}

static void $NAME(const qk_conv2d_f32_params *p, const float *x, const float *w, const float *bias,
                  float *y, float *col) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, len = icg * p->kh * p->kw;
    int32_t plane = p->oh * p->ow, b, g, c, ky, kx, first, i, j, r, l;
    if (p->tile == 0) {
        $NAME_direct(p, x, w, bias, y);
        return;
    }
    for (b = 0; b < p->n; b++)
        for (g = 0; g < p->group; g++)
            for (first = 0; first < plane; first += p->tile) {
                int32_t count = plane - first < p->tile ? plane - first : p->tile;
                int32_t oy = first / p->ow, ox = first % p->ow;
                const float *from = x + ((ptrdiff_t)b * p->ic + (ptrdiff_t)g * icg) * p->ih * p->iw;
                float *row;
                row = col;
                for (c = 0; c < icg; c++, from += (ptrdiff_t)p->ih * p->iw)
                    for (ky = 0; ky < p->kh; ky++)
                        for (kx = 0; kx < p->kw; kx++, row += p->tile)
                            $NAME_unfold(p, from, ky, kx, oy, ox, count, row);
                for (j = 0; j < ocg; j += 4)
                    for (i = 0; i < count; i += 16) {
                        int32_t rows = ocg - j < 4 ? ocg - j : 4, o = g * ocg + j;
                        int32_t width = count - i < 16 ? count - i : 16;
                        float out[64];
                        qk_tile_f32(col + i, p->tile, w + (ptrdiff_t)o * len, len, rows, len, out);
                        for (r = 0; r < rows; r++, o++) {
                            float *to = y + ((ptrdiff_t)b * p->oc + o) * plane + first + i;
                            float add = p->has_bias ? bias[o] : 0.0f;
                            for (l = 0; l < width; l++)
                                to[l] = out[16 * r + l] + add;
                        }
                    }
            }
}
