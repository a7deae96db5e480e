//! kernel convtranspose_q
//! template X=s8,u8,s16,u16 W=s8,u8,s16,u16 Y=s8,u8,s16,u16,f32 R=exact,single,double,shift
//! acc A = X W
//! skip R!=exact X!=s8,u8
//! skip R!=exact W!=s8,u8
//! skip R!=exact Y!=s8,u8
//! uses requant_row_$a_$y$r if Y!=f32
// convtranspose_f32 on integers:
//   acc = sum (x - xz) * (w - wz[c]) + bias[c]
//   y = saturate(round_half_even(acc * mul[c] * 2^shift[c]) + yz)       integer output
//   y = (float)acc * scale[c]                                          float output
// Adding the bias wraps like int32, as in conv2d_q.
typedef struct {
    int32_t n, ic, ih, iw;          /* input */
    int32_t oc, oh, ow;             /* output */
    int32_t kh, kw, sh, sw, dh, dw; /* kernel, strides, dilations */
    int32_t pt, pl;                 /* cut off at the top and left */
    int32_t group;
    int32_t wz_step, m_step; /* of wz; of mul and shift, or scale: 0 per tensor, 1 per channel */
    int32_t xz, yz, lo, hi;
} qk_convtranspose_q_params;

static $A $NAME_one(const qk_convtranspose_q_params *p, const $X *x, const $W *w, int32_t wz,
                    int32_t oy, int32_t ox) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, ky, kx, i;
    ptrdiff_t plane = (ptrdiff_t)p->ih * p->iw, filter = (ptrdiff_t)ocg * p->kh * p->kw;
    $A sum = 0;
    for (ky = 0; ky < p->kh; ky++) {
        int32_t ty = oy + p->pt - ky * p->dh, iy = ty / p->sh;
        if (ty < 0 || ty % p->sh != 0 || iy >= p->ih)
            continue;
        for (kx = 0; kx < p->kw; kx++) {
            int32_t tx = ox + p->pl - kx * p->dw, ix = tx / p->sw;
            const $X *u;
            const $W *v;
            if (tx < 0 || tx % p->sw != 0 || ix >= p->iw)
                continue;
            u = x + (ptrdiff_t)iy * p->iw + ix;
            v = w + (ptrdiff_t)ky * p->kw + kx;
            for (i = 0; i < icg; i++)
                sum += ($A)(u[i * plane] - p->xz) * ($A)(v[i * filter] - wz);
        }
    }
    return sum;
}

static void $NAME(const qk_convtranspose_q_params *p, const $X *x, const $W *w, const $A *bias,
                  const int32_t *wz,
                  //! if Y=f32
                  const float *scale,
                  //! else
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y) {
    int32_t icg = p->ic / p->group, ocg = p->oc / p->group, b, o, oy, ox;
    for (b = 0; b < p->n; b++)
        for (o = 0; o < p->oc; o++) {
            int32_t first = b * p->ic + o / ocg * icg;
            const $X *in = x + (ptrdiff_t)first * p->ih * p->iw;
            const $W *filter = w + ((ptrdiff_t)(o / ocg) * icg * ocg + o % ocg) * p->kh * p->kw;
            $A add = bias ? bias[o] : 0;
            ptrdiff_t at = (ptrdiff_t)o * p->m_step;
            int32_t zero = wz[(ptrdiff_t)o * p->wz_step];
            for (oy = 0; oy < p->oh; oy++)
                for (ox = 0; ox < p->ow; ox++, y++) {
                    $A acc = $NAME_one(p, in, filter, zero, oy, ox);
                    //! if A=s32
                    acc = (int32_t)((uint32_t)acc + (uint32_t)add);
                    //! else
                    acc += add;
                    //! end
                    //! if Y=f32
                    *y = (float)acc * scale[at];
                    //! else
                    qk_requant_row_$a_$y$r(&acc, 1, mul[at], shift[at], p->yz, p->lo, p->hi, y, 1);
                    //! end
                }
        }
}
