//! kernel conv2d_q
//! template X=s8,u8,s16,u16 W=s8,s16,p8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! acc A = X W
//! expand E = X W
//! skip Y=s32 A=s64
//! skip R!=exact X!=s8,u8
//! skip R!=exact W!=s8,p8
//! skip R!=exact Y!=s8,u8
//! uses requant_row_$a_$y$r if Y!=f32,s32
//! uses dot_$e_$w if W!=p8
//! uses unpack_row dot_$e_s8 if W=p8
// Quantized 2-D convolution, NCHW, weights [oc, ic / group, kh, kw]; padding counts as real zero.
//   acc = sum (x - xz) * (w - wz[c]) + bias[c]
//   y = saturate(round_half_even(acc * mul[c] * 2^shift[c]) + yz)       integer output
//   y = (float)acc * scale[c]                                          float output
//   y = acc                                                            int32 output
// ONNX QLinearConv. The caller sees to it that every sum of (x - xz) * w, and of (x - xz) * wz, fits
// the accumulator; adding the bias wraps.
// Some positions of the input are unfolded at a time. Scratch: room bytes, for each position 5 sums and
// ic / group * kh * kw elements, at least for one; packed weights take as many bytes for one row of them, or
// for four where these are left. Pads at the end follow from oh and ow.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ic, ih, iw] */
    int32_t oc, oh, ow;             /* output [n, oc, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t group, room;
    int32_t has_wz, wz_step; /* else wz is not read; step 0 per tensor, 1 per channel */
    int32_t m_step;          /* of mul and shift, or scale: 0 per tensor, 1 per channel */
    int32_t xz, yz, lo, hi;
    int32_t wbits, wsign; /* of packed weights; else not read */
} qk_conv2d_q_params;

static void $NAME_unfold(const qk_conv2d_q_params *p, const $X *x, int32_t first, int32_t count,
                         int32_t channels, $E *col) {
    int32_t kh = p->kh, kw = p->kw, dw = p->dw, xz = p->xz, c, i, ky, kx;
    ptrdiff_t len = (ptrdiff_t)channels * kh * kw, plane = (ptrdiff_t)p->ih * p->iw;
    int same = kh == 1 && kw == 1 && p->sh == 1 && p->sw == 1 && p->pt == 0 && p->pl == 0 &&
               p->oh == p->ih && p->ow == p->iw;
    for (c = 0; c < channels; c++, x += plane, col += (ptrdiff_t)kh * kw) {
        int32_t oy = first / p->ow, ox = first % p->ow;
        for (i = 0; same && i < count; i++)
            col[i * len] = ($E)(x[first + i] - xz);
        for (i = 0; !same && i < count; i++) {
            $E *out = col + i * len;
            int32_t y0 = oy * p->sh - p->pt, x0 = ox * p->sw - p->pl;
            int inside = x0 >= 0 && x0 + (kw - 1) * dw < p->iw;
            for (ky = 0; ky < kh; ky++, out += kw) {
                int32_t iy = y0 + ky * p->dh;
                int real = iy >= 0 && iy < p->ih;
                const $X *row = x + (real ? (ptrdiff_t)iy * p->iw : 0);
                if (real && inside)
                    for (kx = 0; kx < kw; kx++)
                        out[kx] = ($E)(row[x0 + kx * dw] - xz);
                else
                    for (kx = 0; kx < kw; kx++) {
                        int32_t ix = x0 + kx * dw;
                        out[kx] = ($E)(real && ix >= 0 && ix < p->iw ? row[ix] - xz : 0);
                    }
            }
            if (++ox == p->ow) {
                ox = 0;
                oy++;
            }
        }
    }
}

static void $NAME(const qk_conv2d_q_params *p, const $X *x, const $W *w, const $A *bias,
                  const int32_t *wz,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, uint8_t *scratch) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, len = icg * p->kh * p->kw;
    int32_t plane = p->oh * p->ow, b, g, first, i, j, k, r;
    ptrdiff_t each = (ptrdiff_t)len * (ptrdiff_t)sizeof($E) + 5 * (ptrdiff_t)sizeof($A);
    //! if W=p8
    int32_t most = p->room >= each + 4 * (ptrdiff_t)len ? 4 : 1;
    int32_t tile = (int32_t)((p->room - most * (ptrdiff_t)len) / each);
    //! else
    int32_t most = 4, tile = (int32_t)(p->room / each);
    //! end
    $A *acc = ($A *)(void *)scratch, *sums;
    $E *col;
    //! if W=p8
    int8_t *unpacked;
    //! end
    tile = tile > 16 ? tile / 16 * 16 : tile;
    sums = acc + 4 * (ptrdiff_t)tile;
    col = ($E *)(void *)(sums + tile);
    //! if W=p8
    unpacked = (int8_t *)(void *)(col + (ptrdiff_t)tile * len);
    //! end
    for (b = 0; b < p->n; b++)
        for (g = 0; g < p->group; g++)
            for (first = 0; first < plane; first += tile) {
                int32_t count = plane - first < tile ? plane - first : tile;
                $NAME_unfold(p, x + ((ptrdiff_t)b * p->ic + (ptrdiff_t)g * icg) * p->ih * p->iw,
                             first, count, icg, col);
                for (i = 0; p->has_wz && i < count; i++) {
                    sums[i] = 0;
                    for (k = 0; k < len; k++)
                        sums[i] += col[(ptrdiff_t)i * len + k];
                }
                for (j = 0; j < ocg; j += most) {
                    int32_t rows = ocg - j < most ? ocg - j : most;
                    //! if W=p8
                    qk_unpack_row(w, ((ptrdiff_t)g * ocg + j) * len, rows * len, p->wbits, p->wsign,
                                  unpacked);
                    qk_dot_$e_s8(col, count, unpacked, rows, len, acc);
                    //! else
                    qk_dot_$e_$w(col, count, w + ((ptrdiff_t)g * ocg + j) * len, rows, len, acc);
                    //! end
                    for (r = 0; r < rows; r++) {
                        ptrdiff_t o = (ptrdiff_t)g * ocg + j + r;
                        int32_t z = p->has_wz ? wz[o * p->wz_step] : 0;
                        $A add = bias ? bias[o] : 0, *sum = acc + (ptrdiff_t)r * count;
                        $Y *out = y + ((ptrdiff_t)b * p->oc + o) * plane + first;
                        for (i = 0; z != 0 && i < count; i++)
                            sum[i] -= sums[i] * z;
                        //! if A=s32
                        for (i = 0; i < count; i++)
                            sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)add);
                        //! else
                        for (i = 0; i < count; i++)
                            sum[i] += add;
                        //! end
                        //! if Y=f32
                        for (i = 0; i < count; i++)
                            out[i] = (float)sum[i] * scale[o * p->m_step];
                        //! end
                        //! if Y=s32
                        for (i = 0; i < count; i++)
                            out[i] = sum[i];
                        //! end
                        //! if Y!=f32,s32
                        qk_requant_row_$a_$y$r(sum, count, mul[o * p->m_step], shift[o * p->m_step],
                                               p->yz, p->lo, p->hi, out, 1);
                        //! end
                    }
                }
            }
}
