//! kernel conv2d_nhwc_f32
//! uses float_tile floats4
// conv2d_f32 on tensors whose channels come last, [n, h, w, c], for constant weights, and what Relu
// or Clip behind it do, y = min(max(y, lo), hi). Sums go over k in [kh][kw][ic / group] in parts of at most
// 512, which are added up. Weights: per group, blocks of 16 output channels of
// [k][16], filled up with zeros; bias has an entry for each column of a block. Where an output
// position reads more than one input position, or another than its own, some positions are unfolded at a
// time. Scratch: col_bytes, at least 4 for each k of a part.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ih, iw, ic] */
    int32_t oc, oh, ow;             /* output [n, oh, ow, oc] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t group;
    int32_t col_bytes;
    int32_t clamped; /* else lo and hi are not read */
    float lo, hi;
} qk_conv2d_nhwc_f32_params;

/* Rows of n elements: `count` of them, `step` elements apart in x and `pitch` in y. */
static void $NAME_copy(const float *x, ptrdiff_t step, int32_t count, int32_t n, float *y,
                       ptrdiff_t pitch) {
    for (; count > 0; count--, x += step, y += pitch) {
        int32_t i = 0;
#if defined(QK_FLOATS)
        for (; i + QK_LANES <= n; i += QK_LANES)
            qk_store_floats(y + i, qk_load_floats(x + i));
        for (; i + 4 <= n; i += 4)
            qk_store_floats4(y + i, qk_load_floats4(x + i));
#endif
        for (; i < n; i++)
            y[i] = x[i];
    }
}

/* Elements [from, to) of a line of `columns` input positions in row iy, the first of them in column
 * ix, for `count` output positions in a row; returns for how many. */
static int32_t $NAME_lines(const qk_conv2d_nhwc_f32_params *p, const float *x, int32_t icg,
                           int32_t iy, int32_t ix, int32_t columns, int32_t from, int32_t to,
                           int32_t count, float *y, ptrdiff_t pitch) {
    int32_t left = ix < 0 ? -ix : 0, right = p->iw - ix < columns ? p->iw - ix : columns, i = from;
    const float *in = x + ((ptrdiff_t)iy * p->iw + ix) * p->ic;
    int32_t inside = iy >= 0 && iy < p->ih && right > left;
    if (inside && left == 0 && right == columns) {
        int32_t more = (p->iw - columns - ix) / p->sw + 1; /* lines that lie inside */
        count = more < count ? more : count;
        $NAME_copy(in + from, (ptrdiff_t)p->sw * p->ic, count, to - from, y, pitch);
        return count;
    }
    left = !inside ? to : left * icg < to ? left * icg : to;
    right = !inside ? to : right * icg < to ? right * icg : to;
    for (; i < left; i++)
        *y++ = 0.0f;
    for (; i < right; i++)
        *y++ = in[i];
    for (; i < to; i++)
        *y++ = 0.0f;
    return 1;
}

/* Elements [k, end) of `count` positions from `first` on; x begins at the group's first channel of
 * the image. Input positions beside each other make a line where all of their elements are taken. */
static void $NAME_unfold(const qk_conv2d_nhwc_f32_params *p, const float *x, int32_t icg,
                         int32_t first, int32_t count, int32_t k, int32_t end, float *col) {
    int32_t columns = p->dw == 1 && icg == p->ic ? p->kw : 1, length = columns * icg;
    int32_t per_row = p->kw / columns, line = k / length, i, made;
    for (; line * length < end; line++) {
        int32_t down = line / per_row * p->dh - p->pt, across = line % per_row * p->dw - p->pl;
        int32_t from = line * length < k ? k - line * length : 0;
        int32_t to = end - line * length < length ? end - line * length : length;
        int32_t oy = first / p->ow, ox = first % p->ow;
        float *row = col + (line * length + from - k);
        for (i = 0; i < count; i += made, row += (ptrdiff_t)made * (end - k)) {
            made = p->ow - ox < count - i ? p->ow - ox : count - i;
            made = $NAME_lines(p, x, icg, oy * p->sh + down, ox * p->sw + across, columns, from, to,
                               made, row, end - k);
            ox += made;
            if (ox == p->ow) {
                ox = 0;
                oy++;
            }
        }
    }
}

/* Products of `count` positions with all columns of a group, of k elements; `apart` from one block of
 * weights to the next. */
static void $NAME_multiply(const qk_conv2d_nhwc_f32_params *p, const float *a, ptrdiff_t lda,
                           int32_t count, int32_t k, int32_t ocg, const float *w, ptrdiff_t apart,
                           const float *bias, float *y) {
    int32_t j;
    for (j = 0; j < ocg; j += 32, w += 2 * apart, y += 32) {
        int32_t n = ocg - j < 32 ? ocg - j : 32;
        qk_float_tile(a, lda, count, w, apart, k, n, bias ? bias + j : y, bias ? 0 : p->oc, y,
                      p->oc);
    }
}

static void $NAME_clamp(const qk_conv2d_nhwc_f32_params *p, int32_t count, int32_t ocg, float *y) {
    float lo = p->lo, hi = p->hi;
    int32_t i, j;
    for (i = 0; i < count; i++, y += p->oc)
        for (j = 0; j < ocg; j++)
            y[j] = y[j] < lo ? lo : y[j] > hi ? hi : y[j];
}

static void $NAME(const qk_conv2d_nhwc_f32_params *p, const float *x, const float *w,
                  const float *bias, float *y, float *col) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, len = icg * p->kh * p->kw;
    int32_t parts = (len + 511) / 512, part = parts ? (len + parts - 1) / parts : 1;
    int32_t all = (ocg + 15) / 16 * 16, plane = p->oh * p->ow, b, g, first, k;
    int32_t same = p->kh == 1 && p->kw == 1 && p->sh == 1 && p->sw == 1 && p->pt == 0 &&
                   p->pl == 0 && p->oh == p->ih && p->ow == p->iw;
    int32_t tile = same ? 96 : p->col_bytes / (int32_t)sizeof(float) / part;
    tile = tile > 12 ? tile / 12 * 12 : tile;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ih * p->iw * p->ic, y += (ptrdiff_t)plane * p->oc)
        for (g = 0; g < p->group; g++)
            for (first = 0; first < plane; first += tile) {
                int32_t count = plane - first < tile ? plane - first : tile;
                const float *from = x + (ptrdiff_t)g * icg;
                float *to = y + (ptrdiff_t)first * p->oc + (ptrdiff_t)g * ocg;
                for (k = 0; k < len || k == 0; k += part) {
                    int32_t end = len - k < part ? len : k + part;
                    const float *weights = w + (ptrdiff_t)g * all * len + (ptrdiff_t)16 * k;
                    const float *a = same ? from + (ptrdiff_t)first * p->ic + k : col;
                    if (!same)
                        $NAME_unfold(p, from, icg, first, count, k, end, col);
                    $NAME_multiply(p, a, same ? p->ic : end - k, count, end - k, ocg, weights,
                                   (ptrdiff_t)16 * len, k ? (const float *)0 : bias + (ptrdiff_t)g * all,
                                   to);
                }
                if (p->clamped)
                    $NAME_clamp(p, count, ocg, to);
            }
}
