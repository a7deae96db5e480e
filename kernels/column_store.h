//! chunk column_store
//! uses column
/* Sixteen unfolded activations at a time. */
#if defined(QK_VNNI)
static inline void qk_column_store(__m128i v, qk_column *to) {
    _mm_storeu_si128((__m128i *)(void *)to, v);
}
#elif defined(QK_AVX2) || defined(QK_SSE2)
static inline void qk_column_store(__m128i v, qk_column *to) {
    __m128i zero = _mm_setzero_si128();
    _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi8(v, zero));
    _mm_storeu_si128((__m128i *)(void *)(to + 8), _mm_unpackhi_epi8(v, zero));
}
#endif
