//! kernel depthwise_nhwc_q
//! template X=s8,u8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses depthwise_tile_$x requant_tile_$y$r
// depthwise_q on tensors whose channels come last, [n, h, w, c], for one output channel each and
// 8-bit weights with zero point 0 of at most 64 taps. Weights: pairs of taps, [(kh * kw + 1) / 2]
// [c][2], the odd one filled up with zeros. The bias makes up for the zero point of x, which also
// stands for the padding: bias - xz * sum of w. Tables have 16 entries more than there are
// channels. Scratch: pad holds c elements. Sums wrap like int32.
// Works front to back, four positions at a time, whose windows are read while their results are
// written: y may lie over x.
typedef struct {
    int32_t n, c, ih, iw;           /* input [n, ih, iw, c] */
    int32_t oh, ow;                 /* output [n, oh, ow, c] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t xz, yz, lo, hi;
} qk_depthwise_nhwc_q_params;

/* Where each tap of the window at (iy, ix) begins; `pad` where it lies outside. */
static void $NAME_taps(const qk_depthwise_nhwc_q_params *p, const $X *x, int32_t iy, int32_t ix,
                       const $X *pad, const $X **tap) {
    int32_t ky, kx;
    for (ky = 0; ky < p->kh; ky++, iy += p->dh)
        for (kx = 0; kx < p->kw; kx++) {
            int32_t at = ix + kx * p->dw;
            int inside = iy >= 0 && iy < p->ih && at >= 0 && at < p->iw;
            *tap++ = inside ? x + ((ptrdiff_t)iy * p->iw + at) * p->c : pad;
        }
    *tap = tap[-1];
}

/* `rows` windows, at most four, the first at (oy, ox); taps of one 66 after those of another. Where
 * all four lie side by side inside the input, those of the first and the distance from one to the next
 * are enough, which is returned; else 0. `inside` has where taps of such a window begin. */
static ptrdiff_t $NAME_windows(const qk_depthwise_nhwc_q_params *p, const $X *x, int32_t oy,
                               int32_t ox, int32_t rows, const $X *pad, const ptrdiff_t *inside,
                               const $X **tap) {
    int32_t iy = oy * p->sh - p->pt, ix = ox * p->sw - p->pl, taps = p->kh * p->kw, r, t;
    if (rows == 4 && ox + 4 <= p->ow && iy >= 0 && ix >= 0 && iy + (p->kh - 1) * p->dh < p->ih &&
        ix + 3 * p->sw + (p->kw - 1) * p->dw < p->iw) {
        x += ((ptrdiff_t)iy * p->iw + ix) * p->c;
        for (t = 0; t <= taps; t++)
            tap[t] = x + inside[t];
        return (ptrdiff_t)p->sw * p->c;
    }
    for (r = 0; r < rows; r++, tap += 66) {
        $NAME_taps(p, x, oy * p->sh - p->pt, ox * p->sw - p->pl, pad, tap);
        if (++ox == p->ow) {
            ox = 0;
            oy++;
        }
    }
    return 0;
}

static void $NAME(const qk_depthwise_nhwc_q_params *p, const $X *x, const int8_t *w,
                  const int32_t *bias,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, $X *pad) {
    const $X *tap[264];
    ptrdiff_t inside[65], apart;
    int32_t b, i, c, rows, plane = p->oh * p->ow, taps = p->kh * p->kw, acc[128];
    int32_t step = p->kh == 3 && p->kw == 3 && p->dw == 1 && p->sw <= 2 ? p->sw : 0;
    int32_t wide = p->c >= 32 ? 32 : p->c >= 16 ? 16 : p->c >= 8 ? 8 : p->c;
    for (c = 0; c < p->c; c++)
        pad[c] = ($X)p->xz;
    for (c = 0; c < 128; c++) /* all of it is read, even where there are fewer channels */
        acc[c] = 0;
    for (i = 0; i <= taps; i++) { /* the last twice, to make pairs */
        int32_t t = i < taps ? i : taps - 1;
        inside[i] = ((ptrdiff_t)(t / p->kw) * p->dh * p->iw + (ptrdiff_t)(t % p->kw) * p->dw) * p->c;
    }
    for (b = 0; b < p->n && p->c > 0; b++, x += (ptrdiff_t)p->ih * p->iw * p->c)
        for (i = 0; i < plane; i += rows, y += (ptrdiff_t)rows * p->c) {
            int32_t left = plane - i;
#if defined(QK_VNNI) /* windows of a row share columns */
            left = step ? p->ow - i % p->ow : left;
#endif
            rows = left < 4 ? left : 4;
            apart = $NAME_windows(p, x, i / p->ow, i % p->ow, rows, pad, inside, tap);
            for (c = 0;;) { /* the last step reaches back, so that all are equally wide */
                qk_depthwise_tile_$x(tap, apart, step, rows, (taps + 1) / 2, c, wide, w, p->c,
                                     acc);
                //! if Y=f32
                qk_requant_tile_$y(acc, rows, wide, bias + c, scale + c, y + c, p->c);
                //! end
                //! if Y=s32
                qk_requant_tile_$y(acc, rows, wide, bias + c, y + c, p->c);
                //! end
                //! if Y!=f32,s32
                qk_requant_tile_$y$r(acc, rows, wide, bias + c, mul + c, shift + c, p->yz, p->lo,
                                   p->hi, y + c, p->c);
                //! end
                if (c + wide >= p->c)
                    break;
                c = c + 2 * wide <= p->c ? c + wide : p->c - wide;
            }
        }
}
