//! chunk depthwise_tile_dsp
//! template X=s8,u8
//! uses simd
/* depthwise_tile with the products of 16-bit halves of words of Armv7E-M and Armv8-M, four channels at
 * a time. Channels 0 and 2 are halves of one word, 1 and 3 of another. */
#if defined(QK_DSP)
static inline uint32_t qk_bytes_$x(const void *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline int32_t qk_halves_$x(uint32_t bytes) {
    //! if X=s8
    return (int32_t)__sxtb16((int8x4_t)bytes);
    //! else
    return (int32_t)__uxtb16((uint8x4_t)bytes);
    //! end
}

static void qk_depthwise4_$x(const $X *const *tap, ptrdiff_t at, int32_t pairs, const int8_t *w,
                             ptrdiff_t channels, int32_t *acc) {
    int32_t t, b, s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (t = 0; t < pairs; t++, tap += 2, w += 2 * channels) {
        uint32_t v01 = qk_bytes_$x(w), v23 = qk_bytes_$x(w + 4);
        for (b = 0; b < 2; b++, v01 >>= 8, v23 >>= 8) {
            uint32_t x = qk_bytes_$x(tap[b] + at);
            int32_t x02 = qk_halves_$x(x), x13 = qk_halves_$x(x >> 8);
            int32_t w01 = (int32_t)__sxtb16((int8x4_t)v01), w23 = (int32_t)__sxtb16((int8x4_t)v23);
            s0 = __smlabb(x02, w01, s0);
            s1 = __smlabt(x13, w01, s1);
            s2 = __smlatb(x02, w23, s2);
            s3 = __smlatt(x13, w23, s3);
        }
    }
    acc[0] = s0;
    acc[1] = s1;
    acc[2] = s2;
    acc[3] = s3;
}

static void qk_depthwise_any_$x(const $X *const *tap, ptrdiff_t at, int32_t pairs, int32_t n,
                                const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    int32_t t;
    for (; n >= 4; n -= 4, at += 4, w += 8, acc += 4)
        qk_depthwise4_$x(tap, at, pairs, w, channels, acc);
    n &= 3; /* as many are left: compilers see the bound */
    for (; n > 0; n--, at++, w += 2, acc++) {
        const int8_t *from = w;
        *acc = 0;
        for (t = 0; t < 2 * pairs; t += 2, from += 2 * channels)
            *acc += tap[t][at] * from[0] + tap[t + 1][at] * from[1];
    }
}
#endif
