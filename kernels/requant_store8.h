//! chunk requant_store8
//! template Y=s8,u8
//! uses simd
/* The first n of eight results. */
#if defined(__AVX2__)
static inline void qk_requant_store8_$y(__m128i q, int32_t n, $Y *y) {
    $Y eight[16];
    if (n >= 8) {
        _mm_storel_epi64((__m128i *)(void *)y, q);
    } else {
        _mm_storeu_si128((__m128i *)(void *)eight, q);
        memcpy(y, eight, (size_t)n);
    }
}
#endif
