//! chunk depthwise_tile_sse2
//! template X=s8,u8
//! uses simd
/* depthwise_tile of 8 channels, in pairs of 16 bits on vectors of 128 bits. */
#if defined(__SSE2__) && !defined(__AVX2__)
static void qk_depthwise8_$x(const $X *const *tap, ptrdiff_t at, ptrdiff_t apart, int32_t rows,
                             int32_t pairs, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    __m128i zero = _mm_setzero_si128();
    int32_t r, t;
    for (r = 0; r < rows; r++, tap += apart ? 0 : 66, at += apart, acc += 32) {
        const int8_t *from = w;
        __m128i s0 = zero, s1 = zero;
        for (t = 0; t < 2 * pairs; t += 2, from += 2 * channels) {
            __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)(tap[t] + at));
            __m128i y = _mm_loadl_epi64((const __m128i *)(const void *)(tap[t + 1] + at));
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)from);
            __m128i sign = _mm_cmpgt_epi8(zero, v), xy = _mm_unpacklo_epi8(x, y);
            //! if X=s8
            __m128i high = _mm_cmpgt_epi8(zero, xy);
            //! else
            __m128i high = zero;
            //! end
            __m128i p = _mm_madd_epi16(_mm_unpacklo_epi8(xy, high), _mm_unpacklo_epi8(v, sign));
            __m128i q = _mm_madd_epi16(_mm_unpackhi_epi8(xy, high), _mm_unpackhi_epi8(v, sign));
            s0 = _mm_add_epi32(s0, p);
            s1 = _mm_add_epi32(s1, q);
        }
        _mm_storeu_si128((__m128i *)(void *)acc, s0);
        _mm_storeu_si128((__m128i *)(void *)(acc + 4), s1);
    }
}
#endif
