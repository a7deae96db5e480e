//! chunk depthwise_tile
//! template X=s8,u8
//! uses simd
/* acc[i] = sum over t < 2 * pairs of tap[t][c + i] * w[t / 2][c + i][t % 2], for i < n; the weights
 * of a pair of taps take 2 * channels bytes. n is 16 or 8, or below 8. */
#if defined(__AVX512BW__)
static void qk_depthwise16_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, const int8_t *w,
                              ptrdiff_t channels, int32_t *acc) {
    __m512i s = _mm512_setzero_si512();
    int32_t t;
    for (t = 0; t < pairs; t++, w += 2 * channels) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(tap[2 * t] + c));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(tap[2 * t + 1] + c));
        __m256i ab = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(a, b)),
                                             _mm_unpackhi_epi8(a, b), 1);
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(w + 2 * c));
        //! if X=s8
        __m512i x = _mm512_cvtepi8_epi16(ab);
        //! else
        __m512i x = _mm512_cvtepu8_epi16(ab);
        //! end
        s = _mm512_add_epi32(s, _mm512_madd_epi16(x, _mm512_cvtepi8_epi16(v)));
    }
    _mm512_storeu_si512(acc, s);
}
#endif
#if defined(__AVX2__)
static void qk_depthwise8_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, const int8_t *w,
                             ptrdiff_t channels, int32_t *acc) {
    __m256i s = _mm256_setzero_si256();
    int32_t t;
    for (t = 0; t < pairs; t++, w += 2 * channels) {
        __m128i a = _mm_loadl_epi64((const __m128i *)(const void *)(tap[2 * t] + c));
        __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(tap[2 * t + 1] + c));
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(w + 2 * c));
        //! if X=s8
        __m256i x = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b));
        //! else
        __m256i x = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
        //! end
        s = _mm256_add_epi32(s, _mm256_madd_epi16(x, _mm256_cvtepi8_epi16(v)));
    }
    _mm256_storeu_si256((__m256i *)(void *)acc, s);
}
#elif defined(__SSE2__)
static void qk_depthwise8_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, const int8_t *w,
                             ptrdiff_t channels, int32_t *acc) {
    __m128i s0 = _mm_setzero_si128(), s1 = s0, zero = s0;
    int32_t t;
    for (t = 0; t < pairs; t++, w += 2 * channels) {
        __m128i a = _mm_loadl_epi64((const __m128i *)(const void *)(tap[2 * t] + c));
        __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(tap[2 * t + 1] + c));
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(w + 2 * c));
        __m128i x = _mm_unpacklo_epi8(a, b), sv = _mm_cmpgt_epi8(zero, v);
        //! if X=s8
        __m128i sx = _mm_cmpgt_epi8(zero, x);
        //! else
        __m128i sx = zero;
        //! end
        s0 = _mm_add_epi32(
            s0, _mm_madd_epi16(_mm_unpacklo_epi8(x, sx), _mm_unpacklo_epi8(v, sv)));
        s1 = _mm_add_epi32(
            s1, _mm_madd_epi16(_mm_unpackhi_epi8(x, sx), _mm_unpackhi_epi8(v, sv)));
    }
    _mm_storeu_si128((__m128i *)(void *)acc, s0);
    _mm_storeu_si128((__m128i *)(void *)(acc + 4), s1);
}
#endif

static void qk_depthwise_tile_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, int32_t n,
                                 const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    int32_t t, i;
#if defined(__AVX512BW__)
    if (n == 16) {
        qk_depthwise16_$x(tap, pairs, c, w, channels, acc);
        return;
    }
#endif
#if defined(__SSE2__)
    if (n >= 8) {
        for (i = 0; i < n; i += 8)
            qk_depthwise8_$x(tap, pairs, c + i, w, channels, acc + i);
        return;
    }
#endif
    for (i = 0; i < n; i++)
        acc[i] = 0;
    for (t = 0; t < pairs; t++, w += 2 * channels) {
        const $X *a = tap[2 * t] + c, *b = tap[2 * t + 1] + c;
        const int8_t *v = w + 2 * c;
        for (i = 0; i < n; i++)
            acc[i] += a[i] * v[2 * i] + b[i] * v[2 * i + 1];
    }
}
