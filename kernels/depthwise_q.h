//! kernel depthwise_q
//! template X=s8,u8,s16,u16 W=s8,s16,p8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! acc A = X W
//! expand E = X W
//! skip Y=s32 A=s64
//! skip R!=exact X!=s8,u8
//! skip R!=exact W!=s8,p8
//! skip R!=exact Y!=s8,u8
//! uses unpack_row if W=p8
//! uses requant_row_$a_$y$r if Y!=f32,s32
// conv2d_q with one input channel per output channel (group == ic, oc a multiple of ic), one output
// row at a time. Weights [oc, 1, kh, kw]. Same formulas as conv2d_q. Scratch: acc holds ow
// elements, line holds sw * (ow + (kw - 1) * dw / sw).
typedef struct {
    int32_t n, ic, ih, iw;          /* input [n, ic, ih, iw] */
    int32_t oc, oh, ow;             /* output [n, oc, oh, ow] */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* pads at the top and left */
    int32_t has_wz, wz_step;        /* else wz is not read; step 0 per tensor, 1 per channel */
    int32_t m_step;                 /* of mul and shift, or scale: 0 per tensor, 1 per channel */
    int32_t xz, yz, lo, hi;
    int32_t wbits, wsign; /* of packed weights; else not read */
} qk_depthwise_q_params;

/* Copies an input row, less its zero point and with its padding, split by column modulo the stride:
 * what one kernel element sees is then contiguous. */
static void $NAME_line(const qk_depthwise_q_params *p, const $X *row, int32_t width, $E *line) {
    int32_t sw = p->sw, xz = p->xz, phase, i;
    for (phase = 0; phase < p->sw; phase++, line += width) {
        int32_t x0 = phase - p->pl, rest = p->iw - x0;
        int32_t first = x0 < 0 ? (p->sw - 1 - x0) / p->sw : 0;
        int32_t end = rest <= 0 ? 0 : (rest - 1) / p->sw + 1;
        if (first > width)
            first = width;
        if (end > width)
            end = width;
        for (i = 0; i < first; i++)
            line[i] = 0;
        if (sw == 1)
            for (; i < end; i++)
                line[i] = ($E)(row[x0 + i] - xz);
        else
            for (; i < end; i++)
                line[i] = ($E)(row[x0 + i * sw] - xz);
        for (; i < width; i++)
            line[i] = 0;
    }
}

/* Where the column at offset x of the padded row begins in its line. */
static const $E *$NAME_at(const qk_depthwise_q_params *p, const $E *line, int32_t width,
                          int32_t x) {
    return p->sw == 1 ? line + x : line + (ptrdiff_t)(x % p->sw) * width + x / p->sw;
}

/* acc[0..ow) += one kernel row on one line, three kernel elements at a time where there are. */
static void $NAME_taps(const qk_depthwise_q_params *p, const $E *line, int32_t width,
                       //! if W=p8
                       const int8_t *w,
                       //! else
                       const $W *w,
                       //! end
                       int32_t wz, $A *acc) {
    int32_t kx = 0, ow = p->ow, i;
    for (; kx + 3 <= p->kw; kx += 3) {
        int32_t x0 = kx * p->dw, x1 = x0 + p->dw, x2 = x1 + p->dw;
        const $E *l0 = $NAME_at(p, line, width, x0);
        const $E *l1 = $NAME_at(p, line, width, x1);
        const $E *l2 = $NAME_at(p, line, width, x2);
        $E w0 = ($E)(w[kx] - wz), w1 = ($E)(w[kx + 1] - wz), w2 = ($E)(w[kx + 2] - wz);
        for (i = 0; i < ow; i++)
            acc[i] += ($A)l0[i] * w0 + ($A)l1[i] * w1 + ($A)l2[i] * w2;
    }
    for (; kx < p->kw; kx++) {
        const $E *l0 = $NAME_at(p, line, width, kx * p->dw);
        $E w0 = ($E)(w[kx] - wz);
        for (i = 0; i < ow; i++)
            acc[i] += ($A)l0[i] * w0;
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
                  $Y *y, $E *line, $A *acc
                  //! if W=p8
                  ,
                  int8_t *taps
                  //! end
) {
    int32_t ow = p->ow, width = ow + (p->kw - 1) * p->dw / p->sw;
    int32_t multiple = p->ic ? p->oc / p->ic : 1, b, o, oy, ky, i;
    for (b = 0; b < p->n; b++)
        for (o = 0; o < p->oc; o++) {
            //! if W=p8
            qk_unpack_row(w, (ptrdiff_t)o * p->kh * p->kw, p->kh * p->kw, p->wbits, p->wsign, taps);
            //! else
            const $W *taps = w + (ptrdiff_t)o * p->kh * p->kw;
            //! end
            for (oy = 0; oy < p->oh; oy++) {
                int32_t c = o / multiple, z = p->has_wz ? wz[(ptrdiff_t)o * p->wz_step] : 0;
                //! if Y!=s32
                ptrdiff_t at = (ptrdiff_t)o * p->m_step;
                //! end
                const $X *plane = x + ((ptrdiff_t)b * p->ic + c) * p->ih * p->iw;
                $Y *out = y + (((ptrdiff_t)b * p->oc + o) * p->oh + oy) * p->ow;
                $A add = bias ? bias[o] : 0;
                for (i = 0; i < ow; i++)
                    acc[i] = 0;
                for (ky = 0; ky < p->kh; ky++) {
                    int32_t iy = oy * p->sh - p->pt + ky * p->dh;
                    if (iy < 0 || iy >= p->ih)
                        continue;
                    $NAME_line(p, plane + (ptrdiff_t)iy * p->iw, width, line);
                    $NAME_taps(p, line, width, taps + (ptrdiff_t)ky * p->kw, z, acc);
                }
                //! if A=s32
                for (i = 0; i < ow; i++)
                    acc[i] = (int32_t)((uint32_t)acc[i] + (uint32_t)add);
                //! else
                for (i = 0; i < ow; i++)
                    acc[i] += add;
                //! end
                //! if Y=f32
                for (i = 0; i < ow; i++)
                    out[i] = (float)acc[i] * scale[at];
                //! end
                //! if Y=s32
                for (i = 0; i < ow; i++)
                    out[i] = acc[i];
                //! end
                //! if Y!=f32,s32
                qk_requant_row_$a_$y$r(acc, p->ow, mul[at], shift[at], p->yz, p->lo, p->hi, out, 1);
                //! end
            }
        }
}
