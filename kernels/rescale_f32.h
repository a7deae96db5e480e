//! kernel rescale_f32
// y = x * scale, or x / scale where `divides`: DequantizeLinear and QuantizeLinear of floating-point
// types of 8 bits and less, before it is rounded. Where the scale of an element stands is as in
// dequantize.
typedef struct {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
    int32_t divides;
} qk_rescale_f32_params;

static void $NAME(const qk_rescale_f32_params *p, const float *x, const float *scale, float *y) {
    int32_t inner = p->inner, step = p->s_inner, o, a, i;
    for (o = 0; o < p->outer; o++)
        for (a = 0; a < p->axis; a++) {
            ptrdiff_t at = (ptrdiff_t)o * p->s_outer + (ptrdiff_t)(a / p->block) * p->s_axis;
            for (i = 0; i < inner; i++, at += step, x++)
                *y++ = p->divides ? *x / scale[at] : *x * scale[at];
        }
}
