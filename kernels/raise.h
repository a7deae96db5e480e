//! chunk raise
//! template X=s8,u8
//! uses column
/* Copies n activations as columns hold them; signed ones are raised by 128. May write up to 15 more,
 * which whoever follows writes again. Reads before `end`. */
#if defined(__SSE2__)
static inline __m128i qk_raise16_$x(const $X *x) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)x);
    //! if X=s8
    v = _mm_xor_si128(v, _mm_set1_epi8(-128));
    //! end
    return v;
}
#endif

static void qk_raise_$x(const $X *x, const $X *end, int32_t n, qk_column *to) {
    int32_t i = 0;
    (void)end; /* for whole vectors only */
#if defined(QK_VNNI)
    for (; i + 64 <= n; i += 64) {
        __m512i v = _mm512_loadu_si512(x + i);
        //! if X=s8
        v = _mm512_xor_si512(v, _mm512_set1_epi8(-128));
        //! end
        _mm512_storeu_si512(to + i, v);
    }
    for (; i < n && end - x >= i + 16; i += 16)
        _mm_storeu_si128((__m128i *)(void *)(to + i), qk_raise16_$x(x + i));
#elif defined(QK_AVX2)
    for (; i < n && end - x >= i + 16; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(to + i), _mm256_cvtepu8_epi16(qk_raise16_$x(x + i)));
#elif defined(QK_SSE2)
    for (; i < n && end - x >= i + 16; i += 16) {
        __m128i v = qk_raise16_$x(x + i), zero = _mm_setzero_si128();
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm_unpacklo_epi8(v, zero));
        _mm_storeu_si128((__m128i *)(void *)(to + i + 8), _mm_unpackhi_epi8(v, zero));
    }
#endif
    for (; i < n; i++)
        //! if X=s8
        to[i] = (qk_column)((uint8_t)x[i] ^ 0x80u);
    //! else
    to[i] = (qk_column)x[i];
    //! end
}
