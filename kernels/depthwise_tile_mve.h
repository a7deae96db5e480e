//! chunk depthwise_tile_mve
//! template X=s8,u8
//! uses simd
/* depthwise_tile of 8 channels on the vectors of Armv8.1-M: sums of even channels and of odd ones. */
#if defined(QK_MVE)
static inline int16x8_t qk_tap_$x(const $X *x) {
    //! if X=s8
    return vldrbq_s16(x);
    //! else
    return vreinterpretq_s16_u16(vldrbq_u16(x));
    //! end
}

static void qk_depthwise8_$x(const $X *const *tap, ptrdiff_t at, ptrdiff_t apart, int32_t rows,
                             int32_t pairs, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    int32_t r, t;
    for (r = 0; r < rows; r++, tap += apart ? 0 : 66, at += apart, acc += 32) {
        const int8_t *from = w;
        int32x4x2_t sum;
        sum.val[0] = sum.val[1] = vdupq_n_s32(0);
        for (t = 0; t < 2 * pairs; t += 2, from += 2 * channels) {
            int8x16_t v = vldrbq_s8(from);
            int16x8_t x = qk_tap_$x(tap[t] + at), y = qk_tap_$x(tap[t + 1] + at);
            int16x8_t u = vmovlbq_s8(v);
            sum.val[0] = vaddq_s32(sum.val[0], vmullbq_int_s16(x, u));
            sum.val[1] = vaddq_s32(sum.val[1], vmulltq_int_s16(x, u));
            u = vmovltq_s8(v);
            sum.val[0] = vaddq_s32(sum.val[0], vmullbq_int_s16(y, u));
            sum.val[1] = vaddq_s32(sum.val[1], vmulltq_int_s16(y, u));
        }
        vst2q_s32(acc, sum);
    }
}
#endif
