//! kernel quantize
//! template Y=s8,u8,s16,u16,s32
//! uses round_f32 if Y=s32
//! uses round_small quantize_row_$y if Y!=s32
// y = saturate(round_half_even(x / scale) + zp) into [lo, hi]; NaN gives the lowest value of the
// type (ONNX QuantizeLinear, as ONNX Runtime computes it). Scale and zero point of element [o, a,
// i] of x[outer, axis, inner] are those at o * s_outer + a / block * s_axis + i * s_inner: all
// steps 0 per tensor; block 1, s_axis 1 per axis; blocked [outer, blocks, inner]: s_outer = blocks
// * inner, s_axis = inner, s_inner = 1. Works front to back: y may lie over x.
typedef struct {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
    int32_t lo, hi;
} qk_quantize_params;

static void $NAME(const qk_quantize_params *p, const float *x, const float *scale,
                  const int32_t *zp, $Y *y) {
    int32_t inner = p->inner, step = p->s_inner, lo = p->lo, hi = p->hi, o, a, i;
    for (o = 0; o < p->outer; o++)
        for (a = 0; a < p->axis; a++) {
            ptrdiff_t at = (ptrdiff_t)o * p->s_outer + (ptrdiff_t)(a / p->block) * p->s_axis;
            //! if Y=s32
            for (i = 0; i < inner; i++, at += step) {
                float v = *x++ / scale[at];
                int64_t q = v != v ? 0 : qk_round_f32(v) + zp[at];
                q = q < lo ? lo : q > hi ? hi : q;
                *y++ = v != v ? $YMIN : ($Y)q;
            }
            //! else
            if (step == 0) {
                qk_quantize_row_$y(x, inner, scale[at], zp[at], lo, hi, y);
                x += inner;
                y += inner;
                continue;
            }
            for (i = 0; i < inner; i++, at += step) {
                float v = *x++ / scale[at];
                int32_t q = qk_round_small(v) + zp[at];
                q = q < lo ? lo : q > hi ? hi : q;
                *y++ = ($Y)(v == v ? q : $YMIN);
            }
            //! end
        }
}
