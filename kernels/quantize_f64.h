//! kernel quantize_f64
//! template Y=s8,u8,s16,u16,s32,u32
//! uses round_f64
// y = saturate(round_half_even(x / scale) + zp) into [lo, hi], in double; NaN gives the lowest value
// of the type. Where scale and zero point stand is as in quantize.
typedef struct {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
    int64_t lo, hi;
} qk_quantize_f64_params;

static void $NAME(const qk_quantize_f64_params *p, const double *x, const float *scale,
                  const int64_t *zp, $Y *y) {
    int32_t inner = p->inner, step = p->s_inner, o, a, i;
    for (o = 0; o < p->outer; o++)
        for (a = 0; a < p->axis; a++) {
            ptrdiff_t at = (ptrdiff_t)o * p->s_outer + (ptrdiff_t)(a / p->block) * p->s_axis;
            for (i = 0; i < inner; i++, at += step) {
                double v = *x++ / (double)scale[at];
                int64_t q = v != v ? 0 : qk_round_f64(v) + zp[at];
                q = q < p->lo ? p->lo : q > p->hi ? p->hi : q;
                *y++ = v != v ? $YMIN : ($Y)q;
            }
        }
}
