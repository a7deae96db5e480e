//! chunk depthwise_tile_avx2
//! template X=s8,u8
//! uses simd
/* depthwise_tile of 8 channels, in pairs of 16 bits on vectors of 256 bits. */
#if defined(__AVX2__)
static inline __m256i qk_pair_$x(const $X *a, const $X *b) { /* of taps */
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a);
    __m128i y = _mm_loadl_epi64((const __m128i *)(const void *)b);
    //! if X=s8
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
    //! else
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x, y));
    //! end
}

static void qk_depthwise8_$x(const $X *const *tap, ptrdiff_t at, ptrdiff_t apart, int32_t rows,
                             int32_t pairs, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
    ptrdiff_t on = apart ? 0 : 66, r1 = rows > 1 ? 1 : 0, r2 = rows > 2 ? 2 : 0, r3 = rows > 3 ? 3 : 0;
    int32_t t;
    for (t = 0; t < pairs; t++, tap += 2, w += 2 * channels) {
        __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)w));
        const $X *const *u1 = tap + r1 * on, *const *u2 = tap + r2 * on, *const *u3 = tap + r3 * on;
        __m256i x = qk_pair_$x(tap[0] + at, tap[1] + at);
        s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(x, v));
        x = qk_pair_$x(u1[0] + at + r1 * apart, u1[1] + at + r1 * apart);
        s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(x, v));
        x = qk_pair_$x(u2[0] + at + r2 * apart, u2[1] + at + r2 * apart);
        s2 = _mm256_add_epi32(s2, _mm256_madd_epi16(x, v));
        x = qk_pair_$x(u3[0] + at + r3 * apart, u3[1] + at + r3 * apart);
        s3 = _mm256_add_epi32(s3, _mm256_madd_epi16(x, v));
    }
    _mm256_storeu_si256((__m256i *)(void *)acc, s0);
    _mm256_storeu_si256((__m256i *)(void *)(acc + 32), s1);
    _mm256_storeu_si256((__m256i *)(void *)(acc + 64), s2);
    _mm256_storeu_si256((__m256i *)(void *)(acc + 96), s3);
}
#endif
