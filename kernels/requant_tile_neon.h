//! chunk requant_tile_neon
//! template Y=s8,u8
//! uses requant_each_$y simd
/* requant_tile on vectors of 128 bits of an Arm processor: see requant_tile_sse2. */
#if (defined(QK_DOTPROD) || defined(QK_NEON)) && !defined(QXC_INTEGER_ONLY)
static inline int16x4_t qk_rounded4_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                                       const int32_t *shift, int32_t yz, float lo, float hi) {
    int32x4_t k = vmaxq_s32(vld1q_s32(shift), vdupq_n_s32(-126));
    float32x4_t m, v = vcvtq_f32_s32(vaddq_s32(vld1q_s32(acc), vld1q_s32(bias)));
    k = vshlq_n_s32(vaddq_s32(vminq_s32(k, vdupq_n_s32(64)), vdupq_n_s32(127)), 23);
    m = vmulq_f32(vcvtq_f32_s32(vld1q_s32(mul)), vreinterpretq_f32_s32(k));
    v = vminq_f32(vmaxq_f32(vmulq_f32(v, m), vdupq_n_f32(lo)), vdupq_n_f32(hi));
    return vmovn_s32(vaddq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(yz)));
}

static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    float least = (float)(lo - yz), most = (float)(hi - yz);
    int32_t i, j;
    (void)qk_requant_each_$y; /* other processors use it */
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j += 8) {
            int16x8_t q = vcombine_s16(
                qk_rounded4_$y(acc + j, bias + j, mul + j, shift + j, yz, least, most),
                qk_rounded4_$y(acc + j + 4, bias + j + 4, mul + j + 4, shift + j + 4, yz, least,
                               most));
            $Y rest[8];
            //! if Y=s8
            vst1_s8(rest, vmovn_s16(q));
            //! else
            vst1_u8(rest, vmovn_u16(vreinterpretq_u16_s16(q)));
            //! end
            memcpy(y + j, rest, n - j < 8 ? (size_t)(n - j) : 8);
        }
}
#endif
