//! chunk requant_fixed_neon
//! template Y=s8,u8 R=single,double,shift
//! uses requant_each_$y$r simd
/* requant_tile$r on vectors of 128 bits of an Arm processor, whose shifts round. */
#if defined(QK_DOTPROD) || defined(QK_NEON)
/* a * m * 2^k as qk_requant$r rounds it. */
static inline int32x4_t qk_fixed_$y$r(int32x4_t a, int32x4_t m, int32x4_t k) {
    //! if R=single
    int64x2_t low = vmull_s32(vget_low_s32(a), vget_low_s32(m)), high = vmull_high_s32(a, m);
    low = vrshlq_s64(low, vmovl_s32(vget_low_s32(k)));
    high = vrshlq_s64(high, vmovl_high_s32(k));
    return vcombine_s32(vqmovn_s64(low), vqmovn_s64(high));
    //! end
    //! if R=double
    int32x4_t zero = vdupq_n_s32(0), right;
    k = vaddq_s32(k, vdupq_n_s32(31));
    right = vminq_s32(k, zero);
    a = vqrdmulhq_s32(vqshlq_s32(a, vmaxq_s32(k, zero)), m);
    a = vqaddq_s32(a, vshrq_n_s32(vandq_s32(a, right), 31)); /* half away from zero */
    return vrshlq_s32(a, right);
    //! end
    //! if R=shift
    (void)m;
    return vqrshlq_s32(a, vmaxq_s32(k, vdupq_n_s32(-40)));
    //! end
}

static inline int16x4_t qk_fixed4_$y$r(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                                     const int32_t *shift, int32_t yz, int32_t lo, int32_t hi) {
    int32x4_t v = vaddq_s32(vld1q_s32(acc), vld1q_s32(bias));
    v = vqaddq_s32(qk_fixed_$y$r(v, vld1q_s32(mul), vld1q_s32(shift)), vdupq_n_s32(yz));
    return vmovn_s32(vminq_s32(vmaxq_s32(v, vdupq_n_s32(lo)), vdupq_n_s32(hi)));
}

static void qk_requant_tile_$y$r(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    int32_t i, j;
    (void)qk_requant_each_$y$r; /* other processors use it */
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j += 8) {
            int16x8_t q = vcombine_s16(
                qk_fixed4_$y$r(acc + j, bias + j, mul + j, shift + j, yz, lo, hi),
                qk_fixed4_$y$r(acc + j + 4, bias + j + 4, mul + j + 4, shift + j + 4, yz, lo, hi));
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
