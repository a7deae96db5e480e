//! kernel depthwise_q
//! template X=s8,u8,s16,u16 W=s8,s16 Y=s8,u8,s16,u16,f32,s32
//! acc A = X W
//! skip Y=s32 A=s64
//! uses requant_row_$a_$y if Y!=f32,s32
// conv2d_q with one input channel per output channel (group == ic, oc a multiple of ic), one output
// row at a time: acc holds ow elements. Weights [oc, 1, kh, kw]. Same formulas as conv2d_q.
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ic, ih, iw] */
    int32_t oc, oh, ow;             /* output [n, oc, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t has_bias;               /* else bias is not read */
    int32_t has_wz, wz_step;        /* else wz is not read; step 0 per tensor, 1 per channel */
    int32_t m_step;                 /* of mul and shift, or scale: 0 per tensor, 1 per channel */
    int32_t xz, yz, lo, hi;
} qk_depthwise_q_params;

/* acc[i] += (row[i * sw] - xz) * w for first <= i < end */
static void $NAME_tap(const $X *row, int32_t sw, int32_t xz, $A w, int32_t first, int32_t end,
                      $A *acc) {
    int32_t i;
    if (sw == 1)
        for (i = first; i < end; i++)
            acc[i] += (row[i] - xz) * w;
    else if (sw == 2)
        for (i = first; i < end; i++)
            acc[i] += (row[2 * i] - xz) * w;
    else
        for (i = first; i < end; i++)
            acc[i] += (row[(ptrdiff_t)i * sw] - xz) * w;
}

/* One output row. For a tap at offset x0 = kx * dw - pl, column i reads x0 + i * sw. */
static void $NAME_row(const qk_depthwise_q_params *p, const $X *plane, const $W *w, int32_t wz,
                      int32_t oy, $A *acc) {
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
            $NAME_tap(plane + (ptrdiff_t)iy * p->iw + x0, p->sw, p->xz, ($A)w[ky * p->kw + kx] - wz,
                      first, end, acc);
        }
    }
}

static void $NAME(const qk_depthwise_q_params *p, const $X *x, const $W *w, const $A *bias,
                  const int32_t *wz,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, $A *acc) {
    int32_t b, o, oy, i;
    for (b = 0; b < p->n; b++)
        for (o = 0; o < p->oc; o++)
            for (oy = 0; oy < p->oh; oy++) {
                int32_t c = o / (p->oc / p->ic), z = p->has_wz ? wz[o * p->wz_step] : 0;
                $Y *out = y + (((ptrdiff_t)b * p->oc + o) * p->oh + oy) * p->ow;
                $A add = p->has_bias ? bias[o] : 0;
                for (i = 0; i < p->ow; i++)
                    acc[i] = 0;
                $NAME_row(p, x + ((ptrdiff_t)b * p->ic + c) * p->ih * p->iw,
                          w + (ptrdiff_t)o * p->kh * p->kw, z, oy, acc);
                //! if A=s32
                for (i = 0; i < p->ow; i++)
                    acc[i] = (int32_t)((uint32_t)acc[i] + (uint32_t)add);
                //! else
                for (i = 0; i < p->ow; i++)
                    acc[i] += add;
                //! end
                //! if Y=f32
                for (i = 0; i < p->ow; i++)
                    out[i] = (float)acc[i] * scale[o * p->m_step];
                //! end
                //! if Y=s32
                for (i = 0; i < p->ow; i++)
                    out[i] = acc[i];
                //! end
                //! if Y!=f32,s32
                qk_requant_row_$a_$y(acc, p->ow, mul[o * p->m_step], shift[o * p->m_step], p->yz,
                                     p->lo, p->hi, out, 1);
                //! end
            }
}
