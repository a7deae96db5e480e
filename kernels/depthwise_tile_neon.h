//! chunk depthwise_tile_neon
//! template X=s8,u8
//! uses simd
/* depthwise_tile of 8 channels with the 16-bit products of NEON. */
#if defined(QK_NEON) || defined(QK_DOTPROD)
static inline int16x8_t qk_tap_$x(const $X *x) {
    //! if X=s8
    return vmovl_s8(vld1_s8(x));
    //! else
    return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(x)));
    //! end
}

static void qk_depthwise8_$x(const $X *const *tap, ptrdiff_t at, ptrdiff_t apart, int32_t rows,
                             int32_t pairs, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    int32_t r, t;
    for (r = 0; r < rows; r++, tap += apart ? 0 : 66, at += apart, acc += 32) {
        const int8_t *from = w;
        int32x4_t s0 = vdupq_n_s32(0), s1 = s0;
        for (t = 0; t < 2 * pairs; t += 2, from += 2 * channels) {
            int8x8x2_t v = vld2_s8(from);
            int16x8_t x = qk_tap_$x(tap[t] + at), y = qk_tap_$x(tap[t + 1] + at);
            int16x8_t u = vmovl_s8(v.val[0]);
            s0 = vmlal_s16(s0, vget_low_s16(x), vget_low_s16(u));
            s1 = vmlal_high_s16(s1, x, u);
            u = vmovl_s8(v.val[1]);
            s0 = vmlal_s16(s0, vget_low_s16(y), vget_low_s16(u));
            s1 = vmlal_high_s16(s1, y, u);
        }
        vst1q_s32(acc, s0);
        vst1q_s32(acc + 4, s1);
    }
}
#endif
