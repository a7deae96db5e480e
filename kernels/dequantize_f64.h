//! kernel dequantize_f64
//! template X=s8,u8,s16,u16,s32,u32
// y = (x - zp) * scale in double: exact where x - zp has at most 29 bits, else rounded once. Where
// scale and zero point stand is as in dequantize.
typedef struct {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
} qk_dequantize_f64_params;

static void $NAME(const qk_dequantize_f64_params *p, const $X *x, const float *scale,
                  const int64_t *zp, double *y) {
    int32_t inner = p->inner, step = p->s_inner, o, a, i;
    for (o = 0; o < p->outer; o++)
        for (a = 0; a < p->axis; a++) {
            ptrdiff_t at = (ptrdiff_t)o * p->s_outer + (ptrdiff_t)(a / p->block) * p->s_axis;
            for (i = 0; i < inner; i++, at += step)
                *y++ = (double)((int64_t)*x++ - zp[at]) * (double)scale[at];
        }
}
