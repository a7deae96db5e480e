//! chunk depthwise_tile
//! template X=s8,u8
//! uses simd depthwise_tile_vnni_$x depthwise_tile_avx512_$x depthwise_tile_avx2_$x depthwise_tile_sse2_$x
//! uses depthwise_tile_neon_$x depthwise_tile_mve_$x depthwise_tile_dsp_$x depthwise_tile_rvv_$x
/* acc[r * 32 + i] = sum over t < 2 * pairs of tap[r * 66 + t][c + i] * w[t / 2][c + i][t % 2], for
 * windows r < rows <= 4 and i < n; w begins with channel c, a pair of taps takes 2 * channels bytes. n
 * is 32, 16 or 8, or below 8. With a distance `apart`, taps of window r are tap[t] + r * apart. `step` is not 0
 * for windows of 3 x 3 taps in one row: 1 or 2 where each lies so many columns behind the one before,
 * 3 where they share no column. Micro-kernels have `at` instead of c. */
#if !defined(QK_DSP) && !defined(QK_RVV)
static void qk_depthwise_any_$x(const $X *const *tap, ptrdiff_t at, int32_t pairs, int32_t n,
                                const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    int32_t t, i;
    for (i = 0; i < n; i++)
        acc[i] = 0;
    for (t = 0; t < pairs; t++, tap += 2, w += 2 * channels) {
        const $X *a = tap[0] + at, *b = tap[1] + at;
        const int8_t *v = w;
        for (i = 0; i < n; i++, v += 2)
            acc[i] += a[i] * v[0] + b[i] * v[1];
    }
}
#endif

static void qk_depthwise_tile_$x(const $X *const *tap, ptrdiff_t apart, int32_t step,
                                 int32_t rows, int32_t pairs, ptrdiff_t c, int32_t n,
                                 const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    int32_t r;
    (void)step;
#if defined(QK_VNNI)
    if (n == 32 && step) {
        qk_depthwise32_$x(tap, c, apart, rows, step, w, channels, acc);
        return;
    }
#endif
#if defined(__AVX512BW__)
    for (; n >= 16; n -= 16, c += 16, w += 32, acc += 16)
        qk_depthwise16_$x(tap, c, apart, rows, pairs, w, channels, acc);
#endif
#if defined(__SSE2__) || defined(QK_NEON) || defined(QK_DOTPROD) || defined(QK_MVE)
    for (; n >= 8; n -= 8, c += 8, w += 16, acc += 8)
        qk_depthwise8_$x(tap, c, apart, rows, pairs, w, channels, acc);
#endif
    for (r = 0; r < rows && n > 0; r++, c += apart, acc += 32)
        qk_depthwise_any_$x(apart ? tap : tap + 66 * (ptrdiff_t)r, c, pairs, n, w, channels, acc);
}
