//! chunk gemm_tile_sse2
//! uses column
/* gemm_tile in pairs of 16 bits, on vectors of 128 bits. */
#if defined(QK_SSE2)
enum { QK_ROWS = 4, QK_COLUMNS = 4 };

static inline __m128i qk_four(const int16_t *a) { /* 4 k, twice */
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a);
    return _mm_unpacklo_epi64(x, x);
}

static inline __m128i qk_pairs(__m128i x, __m128i y) { /* adds neighbours: sums of 4 columns */
    __m128i even = _mm_unpacklo_epi64(_mm_shuffle_epi32(x, 0x08), _mm_shuffle_epi32(y, 0x08));
    __m128i odd = _mm_unpacklo_epi64(_mm_shuffle_epi32(x, 0x0d), _mm_shuffle_epi32(y, 0x0d));
    return _mm_add_epi32(even, odd);
}

static void qk_gemm_rows(const int16_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    __m128i s00 = _mm_setzero_si128(), s01 = s00, s10 = s00, s11 = s00;
    __m128i s20 = s00, s21 = s00, s30 = s00, s31 = s00;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const int16_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)w);
            __m128i sign = _mm_cmpgt_epi8(_mm_setzero_si128(), v);
            __m128i w0 = _mm_unpacklo_epi8(v, sign), w1 = _mm_unpackhi_epi8(v, sign);
            __m128i x = qk_four(a0 + i);
            s00 = _mm_add_epi32(s00, _mm_madd_epi16(x, w0));
            s01 = _mm_add_epi32(s01, _mm_madd_epi16(x, w1));
            x = qk_four(a1 + i);
            s10 = _mm_add_epi32(s10, _mm_madd_epi16(x, w0));
            s11 = _mm_add_epi32(s11, _mm_madd_epi16(x, w1));
            x = qk_four(a2 + i);
            s20 = _mm_add_epi32(s20, _mm_madd_epi16(x, w0));
            s21 = _mm_add_epi32(s21, _mm_madd_epi16(x, w1));
            x = qk_four(a3 + i);
            s30 = _mm_add_epi32(s30, _mm_madd_epi16(x, w0));
            s31 = _mm_add_epi32(s31, _mm_madd_epi16(x, w1));
        }
    }
    _mm_storeu_si128((__m128i *)(void *)acc, qk_pairs(s00, s01));
    _mm_storeu_si128((__m128i *)(void *)(acc + 32), qk_pairs(s10, s11));
    _mm_storeu_si128((__m128i *)(void *)(acc + 64), qk_pairs(s20, s21));
    _mm_storeu_si128((__m128i *)(void *)(acc + 96), qk_pairs(s30, s31));
}

static void qk_gemm_row(const int16_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    __m128i s0 = _mm_setzero_si128(), s1 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++)
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)w);
            __m128i sign = _mm_cmpgt_epi8(_mm_setzero_si128(), v), x = qk_four(seg[s] + at + i);
            s0 = _mm_add_epi32(s0, _mm_madd_epi16(x, _mm_unpacklo_epi8(v, sign)));
            s1 = _mm_add_epi32(s1, _mm_madd_epi16(x, _mm_unpackhi_epi8(v, sign)));
        }
    _mm_storeu_si128((__m128i *)(void *)acc, qk_pairs(s0, s1));
}
#endif
