//! kernel dequantize
//! template X=s8,u8,s16,u16,s32,p8
//! uses packed if X=p8
// y = (float)(x - zp) * scale (ONNX DequantizeLinear); int32 differences wrap.
// Scale and zero point of element [o, a, i] of x[outer, axis, inner] are those at
// o * s_outer + a / block * s_axis + i * s_inner: all steps 0 per tensor; block 1, s_axis 1 per
// axis; blocked [outer, blocks, inner]: s_outer = blocks * inner, s_axis = inner, s_inner = 1.
// Works front to back: y may lie over x.
typedef struct {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
    int32_t bits, sign; /* of packed x; else not read */
} qk_dequantize_params;

static void $NAME(const qk_dequantize_params *p, const $X *x, const float *scale, const int32_t *zp,
                  float *y) {
    int32_t inner = p->inner, step = p->s_inner, o, a, i;
    //! if X=p8
    ptrdiff_t place = 0;
    //! end
    for (o = 0; o < p->outer; o++)
        for (a = 0; a < p->axis; a++) {
            ptrdiff_t at = (ptrdiff_t)o * p->s_outer + (ptrdiff_t)(a / p->block) * p->s_axis;
            for (i = 0; i < inner; i++, at += step) {
                //! if X=p8
                int32_t v = qk_packed_at(x, place++, p->bits, p->sign);
                //! else
                int32_t v = (int32_t)*x++;
                //! end
                *y++ = (float)(int32_t)((uint32_t)v - (uint32_t)zp[at]) * scale[at];
            }
        }
}
