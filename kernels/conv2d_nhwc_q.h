//! kernel conv2d_nhwc_q
//! template X=s8,u8 W=s8,p8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses raise_$x requant_tile_$y$r
//! uses gemm_tile if W=s8
//! uses gemm_tile4 if W=p8
// conv2d_q on tensors whose channels come last, [n, h, w, c], for 8-bit weights with zero point 0,
// or for 4-bit ones, packed as kernels/unpack4.h says.
// With one segment the input is unfolded some positions at a time, and k counts [kh][kw][ic / group].
// With kh segments (group and dilations 1, kh at most 16) kh input rows with their padding are kept,
// and k of each counts [kw][ic]. Weights: per group, blocks of 16 output channels of
// [segments][k / 4][16][4], each k filled up to a multiple of 4 with zeros. x counts from 0 (signed input is raised by 128), and the
// bias makes up for that and for the zero point of x: bias - (xz + raised) * sum of w. Tables have
// an entry for each column of a block. Sums wrap like int32. Scratch: col_bytes, 32 of them slack, the
// others at least 2 * 4 * steps, or for each of kh rows 2 * (((ow - 1) * sw + kw) * ic + 15); on the stack is 1 KiB of sums.
// Without groups it works front to back, y may lie over x: windows are read before the results of
// their positions are written, and with kh segments an input row once, before the first result that
// needs it.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ih, iw, ic] */
    int32_t oc, oh, ow;             /* output [n, oh, ow, oc] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t group;
    int32_t segments, steps; /* of k, and steps of four of each */
    int32_t col_bytes;
    int32_t xz, yz, lo, hi;
} qk_conv2d_nhwc_q_params;

/* One kernel row at column x0 of an input row. */
static void $NAME_span(const qk_conv2d_nhwc_q_params *p, const $X *row, const $X *end, int32_t x0,
                       int32_t icg, qk_column *to) {
    int32_t kx, i;
    if (x0 >= 0 && x0 + p->kw <= p->iw && p->dw == 1 && icg == p->ic) {
        qk_raise_$x(row + (ptrdiff_t)x0 * icg, end, p->kw * icg, to);
        return;
    }
    for (kx = 0; kx < p->kw; kx++, to += icg) {
        int32_t ix = x0 + kx * p->dw;
        if (ix >= 0 && ix < p->iw)
            qk_raise_$x(row + (ptrdiff_t)ix * p->ic, end, icg, to);
        else
            for (i = 0; i < icg; i++)
                to[i] = (qk_column)p->xz;
    }
}

/* `count` positions from `first` on; x begins at the group's first channel of the image. */
static void $NAME_unfold(const qk_conv2d_nhwc_q_params *p, const $X *x, const $X *end,
                         int32_t first, int32_t count, int32_t icg, qk_column *col) {
    int32_t oy = first / p->ow, ox = first % p->ow, span = p->kw * icg, i, ky, k;
    int same = p->kh == 1 && p->kw == 1 && p->sh == 1 && p->sw == 1 && p->pt == 0 && p->pl == 0 &&
               p->oh == p->ih && p->ow == p->iw;
    if (same && icg == p->ic && icg == 4 * p->steps) {
        qk_raise_$x(x + (ptrdiff_t)first * icg, end, count * icg, col);
        return;
    }
    for (i = 0; i < count; i++, col += (ptrdiff_t)4 * p->steps) {
        int32_t iy = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl;
        qk_column *to = col;
        for (ky = 0; ky < p->kh; ky++, iy += p->dh, to += span)
            if (iy >= 0 && iy < p->ih)
                $NAME_span(p, x + (ptrdiff_t)iy * p->iw * p->ic, end, x0, icg, to);
            else
                for (k = 0; k < span; k++)
                    to[k] = (qk_column)p->xz;
        for (k = p->kh * span; k < 4 * p->steps; k++)
            col[k] = 0;
        if (++ox == p->ow) {
            ox = 0;
            oy++;
        }
    }
}

/* Input row iy with its padding, `columns` of them in all; three zeros after it fill up the last
 * step, whatever weight they meet is zero. */
static void $NAME_row(const qk_conv2d_nhwc_q_params *p, const $X *x, const $X *end, int32_t iy,
                      int32_t columns, qk_column *to) {
    int32_t ic = p->ic, left = p->pl < columns ? p->pl : columns, i;
    int32_t inside = columns - left < p->iw ? columns - left : p->iw;
    int32_t n = columns * ic;
    if (iy < 0 || iy >= p->ih) {
        left = columns;
        inside = 0;
    }
    for (i = 0; i < left * ic; i++)
        to[i] = (qk_column)p->xz;
    if (inside > 0)
        qk_raise_$x(x + (ptrdiff_t)iy * p->iw * ic, end, inside * ic, to + (ptrdiff_t)left * ic);
    for (i = (left + inside) * ic; i < n; i++)
        to[i] = (qk_column)p->xz;
    for (; i < n + 3; i++)
        to[i] = 0;
}

/* Products of `count` positions with all columns of a group, `at` the first of them. */
static void $NAME_multiply(const qk_conv2d_nhwc_q_params *p, const qk_column *const *seg,
                           ptrdiff_t lda, int32_t count, int32_t at, int32_t ocg, const $W *w,
                           const int32_t *bias,
                           //! if Y=f32
                           const float *scale,
                           //! end
                           //! if Y!=f32,s32
                           const int32_t *mul, const int32_t *shift,
                           //! end
                           $Y *y) {
    QK_LINE int32_t acc[256];
    int32_t rows, i, j, wide = 32;
    ptrdiff_t block = (ptrdiff_t)4 * p->steps * p->segments;
    //! if W=p8
    int8_t part[QK_UNPACKED];
    int32_t unpacked;
    wide = 32 * block <= QK_UNPACKED ? 32 : 16;
    //! end
    for (j = 0; j < ocg; j += wide, at += wide) {
        int32_t n = ocg - j < wide ? ocg - j : wide, two = n > 16 ? 2 : 1;
        //! if W=p8
        unpacked = qk_unpack_blocks(w + at * block / 2, 16 * two * block, part);
        //! end
        for (i = 0; i < count; i += rows) {
            $Y *out = y + (ptrdiff_t)i * p->oc + j;
            rows = qk_gemm_height(count - i);
            //! if W=p8
            qk_gemm_tile4(seg, p->segments, i * lda, lda, rows, w + at * block / 2, p->steps, two,
                          part, unpacked, acc);
            //! else
            qk_gemm_tile(seg, p->segments, i * lda, lda, rows, w + at * block, p->steps, two, acc);
            //! end
            //! if Y=f32
            qk_requant_tile_$y(acc, rows, n, bias + at, scale + at, out, p->oc);
            //! end
            //! if Y=s32
            qk_requant_tile_$y(acc, rows, n, bias + at, out, p->oc);
            //! end
            //! if Y!=f32,s32
            qk_requant_tile_$y$r(acc, rows, n, bias + at, mul + at, shift + at, p->yz, p->lo, p->hi,
                               out, p->oc);
            //! end
        }
    }
}

static void $NAME(const qk_conv2d_nhwc_q_params *p, const $X *x, const $W *w,
                  const int32_t *bias,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, uint8_t *scratch) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, plane = p->oh * p->ow, b, g, i, k;
    ptrdiff_t image = (ptrdiff_t)p->ih * p->iw * p->ic, room = p->col_bytes - 32;
    qk_column *col = (qk_column *)(void *)scratch;
    const qk_column *seg[16];
    const $X *end = x + p->n * image;
    for (b = 0; b < p->n; b++, x += image, y += (ptrdiff_t)plane * p->oc) {
        if (p->segments > 1) { /* row by row: kh rows of input, each loaded once */
            int32_t columns = (p->ow - 1) * p->sw + p->kw, have = -p->pt;
            ptrdiff_t pitch = room / (ptrdiff_t)sizeof(qk_column) / p->kh;
            for (i = 0; i < p->oh; i++) {
                int32_t top = i * p->sh - p->pt;
                for (have = have > top ? have : top; have < top + p->kh; have++)
                    $NAME_row(p, x, end, have, columns, col + (have + p->pt) % p->kh * pitch);
                for (k = 0; k < p->kh; k++)
                    seg[k] = col + (top + k + p->pt) % p->kh * pitch;
                //! if Y=f32
                $NAME_multiply(p, seg, (ptrdiff_t)p->sw * p->ic, p->ow, 0, p->oc, w, bias, scale,
                               y + (ptrdiff_t)i * p->ow * p->oc);
                //! end
                //! if Y=s32
                $NAME_multiply(p, seg, (ptrdiff_t)p->sw * p->ic, p->ow, 0, p->oc, w, bias,
                               y + (ptrdiff_t)i * p->ow * p->oc);
                //! end
                //! if Y!=f32,s32
                $NAME_multiply(p, seg, (ptrdiff_t)p->sw * p->ic, p->ow, 0, p->oc, w, bias, mul,
                               shift, y + (ptrdiff_t)i * p->ow * p->oc);
                //! end
            }
            continue;
        }
        for (g = 0; g < p->group; g++) {
            int32_t tile = (int32_t)(room / ((ptrdiff_t)sizeof(qk_column) * 4 * p->steps));
            tile = tile > 8 ? tile / 8 * 8 : tile;
            seg[0] = col;
            for (i = 0; i < plane; i += tile) {
                int32_t count = plane - i < tile ? plane - i : tile, at = (ocg + 15) / 16 * 16 * g;
                $Y *out = y + (ptrdiff_t)i * p->oc + (ptrdiff_t)g * ocg;
                $NAME_unfold(p, x + (ptrdiff_t)g * icg, end, i, count, icg, col);
                //! if Y=f32
                $NAME_multiply(p, seg, (ptrdiff_t)4 * p->steps, count, at, ocg, w, bias, scale,
                               out);
                //! end
                //! if Y=s32
                $NAME_multiply(p, seg, (ptrdiff_t)4 * p->steps, count, at, ocg, w, bias, out);
                //! end
                //! if Y!=f32,s32
                $NAME_multiply(p, seg, (ptrdiff_t)4 * p->steps, count, at, ocg, w, bias, mul,
                               shift, out);
                //! end
            }
        }
    }
}
