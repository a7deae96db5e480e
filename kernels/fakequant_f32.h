//! kernel fakequant_f32
//! uses round_f32 round_small
// y = dequantize(quantize(x)) in [lo, hi]; nan is what NaN quantizes to: the lowest value of the
// type. Scale and zero point of element [o, a, i] of x[outer, axis, inner] are those at o * s_outer
// + a / block * s_axis + i * s_inner: all steps 0 per tensor; block 1, s_axis 1 per axis; blocked
// [outer, blocks, inner]: s_outer = blocks * inner, s_axis = inner, s_inner = 1. y may be x.
typedef struct {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
    int32_t lo, hi, nan;
} qk_fakequant_f32_params;

static void $NAME(const qk_fakequant_f32_params *p, const float *x, const float *scale,
                  const int32_t *zp, float *y) {
    int32_t inner = p->inner, step = p->s_inner, lo = p->lo, hi = p->hi, nan = p->nan;
    int32_t o, a, i;
    for (o = 0; o < p->outer; o++)
        for (a = 0; a < p->axis; a++) {
            ptrdiff_t at = (ptrdiff_t)o * p->s_outer + (ptrdiff_t)(a / p->block) * p->s_axis;
            if (step == 0 && lo >= -65536 && hi <= 65536) { /* a form that compilers vectorise */
                float s = scale[at];
                int32_t z = zp[at];
                for (i = 0; i < inner; i++) {
                    float v = x[i] / s;
                    int32_t q = qk_round_small(v) + z;
                    q = q < lo ? lo : q > hi ? hi : q;
                    q = v == v ? q : nan;
                    y[i] = (float)(q - z) * s;
                }
                x += inner;
                y += inner;
                continue;
            }
            for (i = 0; i < inner; i++, at += step) {
                float v = *x++ / scale[at];
                int64_t q = v != v ? 0 : qk_round_f32(v) + zp[at];
                q = q < lo ? lo : q > hi ? hi : q;
                if (v != v)
                    q = nan;
                *y++ = (float)(int32_t)((uint32_t)(int32_t)q - (uint32_t)zp[at]) * scale[at];
            }
        }
}
