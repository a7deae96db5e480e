//! kernel depthwise_nhwc_q
//! template X=s8,u8 Y=s8,u8,s16,u16,f32,s32
//! uses depthwise_tile_$x requant_tile_$y
// depthwise_q on tensors whose channels come last, [n, h, w, c], for one output channel each and
// 8-bit weights with zero point 0 of at most 64 taps. Weights: pairs of taps, [(kh * kw + 1) / 2]
// [c][2], the odd one filled up with zeros. The bias makes up for the zero point of x, which also
// stands for the padding: bias - xz * sum of w. Tables have 16 entries more than there are
// channels. Scratch: pad holds c elements. Sums wrap like int32.
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
    *tap = pad;
}

static void $NAME_pixel(const qk_depthwise_nhwc_q_params *p, const $X *const *tap, const int8_t *w,
                        const int32_t *bias,
                        //! if Y=f32
                        const float *scale,
                        //! end
                        //! if Y!=f32,s32
                        const int32_t *mul, const int32_t *shift,
                        //! end
                        $Y *y) {
    int32_t c, wide = p->c >= 16 ? 16 : p->c >= 8 ? 8 : p->c, acc[32];
    for (c = 0; c < 16; c++) /* all of it is read */
        acc[c] = 0;
    for (c = 0;;) { /* the last step reaches back, so that all are equally wide */
        qk_depthwise_tile_$x(tap, (p->kh * p->kw + 1) / 2, c, wide, w, p->c, acc);
        //! if Y=f32
        qk_requant_tile_$y(acc, 1, wide, bias + c, scale + c, y + c, 0);
        //! end
        //! if Y=s32
        qk_requant_tile_$y(acc, 1, wide, bias + c, y + c, 0);
        //! end
        //! if Y!=f32,s32
        qk_requant_tile_$y(acc, 1, wide, bias + c, mul + c, shift + c, p->yz, p->lo, p->hi, y + c,
                           0);
        //! end
        if (c + wide >= p->c)
            return;
        c = c + 2 * wide <= p->c ? c + wide : p->c - wide;
    }
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
    const $X *tap[65];
    int32_t b, oy, ox, t, taps = p->kh * p->kw;
    int32_t from = (p->pl + p->sw - 1) / p->sw; /* columns [from, to) reach no padding */
    int32_t to = p->iw + p->pl - (p->kw - 1) * p->dw;
    to = to > 0 ? (to - 1) / p->sw + 1 : 0;
    for (t = 0; t < p->c; t++)
        pad[t] = ($X)p->xz;
    for (b = 0; b < p->n; b++, x += (ptrdiff_t)p->ih * p->iw * p->c)
        for (oy = 0; oy < p->oh; oy++)
            for (ox = 0; ox < p->ow && p->c > 0; ox++, y += p->c) {
                int32_t iy = oy * p->sh - p->pt;
                if (ox > from && ox < to)
                    for (t = 0; t < taps; t++)
                        tap[t] += tap[t] == pad ? 0 : (ptrdiff_t)p->sw * p->c;
                else
                    $NAME_taps(p, x, iy, ox * p->sw - p->pl, pad, tap);
                //! if Y=f32
                $NAME_pixel(p, tap, w, bias, scale, y);
                //! end
                //! if Y=s32
                $NAME_pixel(p, tap, w, bias, y);
                //! end
                //! if Y!=f32,s32
                $NAME_pixel(p, tap, w, bias, mul, shift, y);
                //! end
            }
}
