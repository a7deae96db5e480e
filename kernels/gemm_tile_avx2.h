//! chunk gemm_tile_avx2
//! uses column
/* gemm_tile in pairs of 16 bits, on vectors of 256 bits. */
#if defined(QK_AVX2)
enum { QK_ROWS = 4, QK_COLUMNS = 8 };

static inline __m256i qk_wide(const int8_t *w) { /* 4 columns x 4 k, as 16 bits */
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)w));
}

static inline __m256i qk_four(const int16_t *a) { /* 4 k, four times */
    int64_t four;
    memcpy(&four, a, 8);
    return _mm256_set1_epi64x(four);
}

static inline __m256i qk_pairs(__m256i x, __m256i y) { /* adds neighbours: sums of 8 columns */
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(x, y), 0xd8);
}

static void qk_gemm_rows(const int16_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    __m256i s00 = _mm256_setzero_si256(), s01 = s00, s10 = s00, s11 = s00;
    __m256i s20 = s00, s21 = s00, s30 = s00, s31 = s00;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const int16_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            __m256i w0 = qk_wide(w), w1 = qk_wide(w + 16), x = qk_four(a0 + i);
            s00 = _mm256_add_epi32(s00, _mm256_madd_epi16(x, w0));
            s01 = _mm256_add_epi32(s01, _mm256_madd_epi16(x, w1));
            x = qk_four(a1 + i);
            s10 = _mm256_add_epi32(s10, _mm256_madd_epi16(x, w0));
            s11 = _mm256_add_epi32(s11, _mm256_madd_epi16(x, w1));
            x = qk_four(a2 + i);
            s20 = _mm256_add_epi32(s20, _mm256_madd_epi16(x, w0));
            s21 = _mm256_add_epi32(s21, _mm256_madd_epi16(x, w1));
            x = qk_four(a3 + i);
            s30 = _mm256_add_epi32(s30, _mm256_madd_epi16(x, w0));
            s31 = _mm256_add_epi32(s31, _mm256_madd_epi16(x, w1));
        }
    }
    _mm256_storeu_si256((__m256i *)(void *)acc, qk_pairs(s00, s01));
    _mm256_storeu_si256((__m256i *)(void *)(acc + 32), qk_pairs(s10, s11));
    _mm256_storeu_si256((__m256i *)(void *)(acc + 64), qk_pairs(s20, s21));
    _mm256_storeu_si256((__m256i *)(void *)(acc + 96), qk_pairs(s30, s31));
}

static void qk_gemm_row(const int16_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    __m256i s0 = _mm256_setzero_si256(), s1 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++)
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            __m256i x = qk_four(seg[s] + at + i);
            s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(x, qk_wide(w)));
            s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(x, qk_wide(w + 16)));
        }
    _mm256_storeu_si256((__m256i *)(void *)acc, qk_pairs(s0, s1));
}
#endif
