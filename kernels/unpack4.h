//! chunk unpack4
//! uses simd
/* Weights of 4 bits as 8-bit ones, eight at a time: of four bytes the low halves, then the high
 * ones; halves count from -8. */
#if defined(__SSE2__)
enum { QK_UNPACKED = 4096 }; /* what lies on the stack of them, in bytes */
#else
enum { QK_UNPACKED = 1024 };
#endif

static inline uint32_t qk_halves4(uint32_t v) {
    v &= 0x0f0f0f0fu;
#if defined(QK_DSP)
    return (uint32_t)__usub8((uint8x4_t)v, (uint8x4_t)0x08080808u);
#else
    return ((v | 0x80808080u) - 0x08080808u) ^ 0x80808080u; /* no byte borrows */
#endif
}

static void qk_unpack4(const uint8_t *from, ptrdiff_t n, int8_t *to) {
#if defined(__SSE2__)
    __m128i low = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
    for (; n >= 32; n -= 32, from += 16, to += 32) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)from);
        __m128i a = _mm_sub_epi8(_mm_and_si128(v, low), eight);
        __m128i b = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(v, 4), low), eight);
        _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi32(a, b));
        _mm_storeu_si128((__m128i *)(void *)(to + 16), _mm_unpackhi_epi32(a, b));
    }
#endif
    for (; n > 0; n -= 8, from += 4, to += 8) {
        uint32_t v, w;
        memcpy(&v, from, 4);
        w = qk_halves4(v >> 4);
        v = qk_halves4(v);
        memcpy(to, &v, 4);
        memcpy(to + 4, &w, 4);
    }
}
