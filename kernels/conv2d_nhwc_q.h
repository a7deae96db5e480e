//! kernel conv2d_nhwc_q
//! template X=s8,u8 Y=s8,u8,s16,u16,f32,s32
//! uses gemm_tile requant_tile_$y
// conv2d_q on tensors whose channels come last, [n, h, w, c], for 8-bit weights with zero point 0.
// The input is unfolded some positions at a time and multiplied with packed weights:
// per group, blocks of 16 output channels of [k / 4][16][4], k counting [kh][kw][ic / group] and
// filled up to a multiple of 4 with zeros. x counts from 0 (signed input is raised by 128), and the
// bias makes up for that and for the zero point of x: bias - (xz + raised) * sum of w. Tables have
// an entry for each column of a block. Sums wrap like int32. Scratch: col holds 8 bytes for each of
// at least 8 rows of 4 * steps; on the stack are 1 KiB of sums.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ih, iw, ic] */
    int32_t oc, oh, ow;             /* output [n, oh, ow, oc] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t group, steps;           /* steps of four along k */
    int32_t col_bytes;
    int32_t xz, yz, lo, hi;
} qk_conv2d_nhwc_q_params;

static void $NAME_raise(const $X *x, int32_t n, qk_column *to) {
    int32_t i;
    for (i = 0; i < n; i++)
        //! if X=s8
        to[i] = (qk_column)((uint8_t)x[i] ^ 0x80u);
    //! else
    to[i] = (qk_column)x[i];
    //! end
}

/* Columns [from, to) of one kernel row, at input row `row`, first of them at column x0. */
static void $NAME_span(const qk_conv2d_nhwc_q_params *p, const $X *row, int32_t x0, int32_t icg,
                       qk_column *to) {
    int32_t kx, i, inside = x0 >= 0 && x0 + (p->kw - 1) * p->dw < p->iw;
    if (inside && p->dw == 1 && icg == p->ic) {
        $NAME_raise(row + (ptrdiff_t)x0 * icg, p->kw * icg, to);
        return;
    }
    for (kx = 0; kx < p->kw; kx++, to += icg) {
        int32_t ix = x0 + kx * p->dw;
        if (ix >= 0 && ix < p->iw)
            $NAME_raise(row + (ptrdiff_t)ix * p->ic, icg, to);
        else
            for (i = 0; i < icg; i++)
                to[i] = (qk_column)p->xz;
    }
}

static void $NAME_unfold(const qk_conv2d_nhwc_q_params *p, const $X *x, int32_t first,
                         int32_t count, int32_t icg, qk_column *col) {
    int32_t oy = first / p->ow, ox = first % p->ow, len = p->kh * p->kw * icg, i, ky, k;
    for (i = 0; i < count; i++, col += (ptrdiff_t)4 * p->steps) {
        qk_column *to = col;
        for (ky = 0; ky < p->kh; ky++, to += (ptrdiff_t)p->kw * icg) {
            int32_t iy = oy * p->sh - p->pt + ky * p->dh;
            if (iy >= 0 && iy < p->ih)
                $NAME_span(p, x + (ptrdiff_t)iy * p->iw * p->ic, ox * p->sw - p->pl, icg, to);
            else
                for (k = 0; k < p->kw * icg; k++)
                    to[k] = (qk_column)p->xz;
        }
        for (k = len; k < 4 * p->steps; k++)
            col[k] = 0;
        if (++ox == p->ow) {
            ox = 0;
            oy++;
        }
    }
}

static void $NAME(const qk_conv2d_nhwc_q_params *p, const $X *x, const int8_t *w,
                  const int32_t *bias,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, uint8_t *scratch) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, blocks = (ocg + 15) / 16;
    int32_t plane = p->oh * p->ow, b, g, first, i, j, acc[256];
    ptrdiff_t lda = (ptrdiff_t)4 * p->steps;
    int32_t tile = (int32_t)(p->col_bytes / (lda * (ptrdiff_t)sizeof(qk_column)));
    qk_column *col = (qk_column *)(void *)scratch;
    tile = tile > 8 ? tile / 8 * 8 : tile;
    for (b = 0; b < p->n; b++)
        for (g = 0; g < p->group; g++)
            for (first = 0; first < plane; first += tile) {
                int32_t count = plane - first < tile ? plane - first : tile;
                $Y *out = y + ((ptrdiff_t)b * plane + first) * p->oc + (ptrdiff_t)g * ocg;
                $NAME_unfold(p, x + (ptrdiff_t)b * p->ih * p->iw * p->ic + (ptrdiff_t)g * icg,
                             first, count, icg, col);
                for (j = 0; j < blocks; j += 2) {
                    int32_t two = blocks - j < 2 ? 1 : 2, at = 16 * (g * blocks + j);
                    int32_t n = ocg - 16 * j < 32 ? ocg - 16 * j : 32;
                    for (i = 0; i < count; i += 8) {
                        int32_t rows = count - i < 8 ? count - i : 8;
                        qk_gemm_tile(col + i * lda, lda, rows, w + at * lda, p->steps, two, acc);
                        //! if Y=f32
                        qk_requant_tile_$y(acc, rows, n, bias + at, scale + at,
                                           out + (ptrdiff_t)i * p->oc + (ptrdiff_t)16 * j, p->oc);
                        //! end
                        //! if Y=s32
                        qk_requant_tile_$y(acc, rows, n, bias + at,
                                           out + (ptrdiff_t)i * p->oc + (ptrdiff_t)16 * j, p->oc);
                        //! end
                        //! if Y!=f32,s32
                        qk_requant_tile_$y(acc, rows, n, bias + at, mul + at, shift + at, p->yz,
                                           p->lo, p->hi,
                                           out + (ptrdiff_t)i * p->oc + (ptrdiff_t)16 * j, p->oc);
                        //! end
                    }
                }
            }
}
