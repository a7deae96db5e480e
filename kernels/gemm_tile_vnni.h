//! chunk gemm_tile_vnni
//! uses column dot_vnni
/* gemm_tile with the dot products of AVX512-VNNI. */
#if defined(QK_VNNI)
static inline __m512i qk_four(const uint8_t *a) { /* 4 k, 16 times */
    int32_t four;
    memcpy(&four, a, 4);
    return _mm512_set1_epi32(four);
}

/* Compilers make code of its own for each pair of the constants `rows` and `blocks`, with the sums in
 * registers. */
__attribute__((always_inline)) static inline void
qk_gemm_rows(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda, int32_t rows,
             const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    ptrdiff_t apart = (ptrdiff_t)64 * k * n;
    __m512i sum[8][2], x;
    int32_t i, s, r;
#pragma GCC unroll 8
    for (r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    for (s = 0; s < n; s++) {
        const uint8_t *a = seg[s] + at;
        for (i = 0; i < k; i++, a += 4, w += 64) {
            __m512i w0 = _mm512_loadu_si512(w);
            __m512i w1 = blocks == 2 ? _mm512_loadu_si512(w + apart) : w0;
#pragma GCC unroll 8
            for (r = 0; r < rows; r++) {
                x = qk_four(a + r * lda);
                sum[r][0] = qk_dot4(sum[r][0], x, w0);
                if (blocks == 2)
                    sum[r][1] = qk_dot4(sum[r][1], x, w1);
            }
        }
    }
#pragma GCC unroll 8
    for (r = 0; r < rows; r++, acc += 32) {
        _mm512_storeu_si512(acc, sum[r][0]);
        if (blocks == 2)
            _mm512_storeu_si512(acc + 16, sum[r][1]);
    }
}

/* One row of one block: four sums over k hide the latency of the product. */
static void qk_gemm_row(const uint8_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a = seg[s] + at;
        for (i = 0; i + 4 <= k; i += 4, a += 16, w += 256) {
            s0 = qk_dot4(s0, qk_four(a), _mm512_loadu_si512(w));
            s1 = qk_dot4(s1, qk_four(a + 4), _mm512_loadu_si512(w + 64));
            s2 = qk_dot4(s2, qk_four(a + 8), _mm512_loadu_si512(w + 128));
            s3 = qk_dot4(s3, qk_four(a + 12), _mm512_loadu_si512(w + 192));
        }
        for (; i < k; i++, a += 4, w += 64)
            s0 = qk_dot4(s0, qk_four(a), _mm512_loadu_si512(w));
    }
    s0 = _mm512_add_epi32(_mm512_add_epi32(s0, s1), _mm512_add_epi32(s2, s3));
    _mm512_storeu_si512(acc, s0);
}

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t j;
    switch (blocks == 2 ? rows : -rows) {
    case 8: qk_gemm_rows(a, n, at, lda, 8, w, k, 2, acc); return;
    case 7: qk_gemm_rows(a, n, at, lda, 7, w, k, 2, acc); return;
    case 6: qk_gemm_rows(a, n, at, lda, 6, w, k, 2, acc); return;
    case 5: qk_gemm_rows(a, n, at, lda, 5, w, k, 2, acc); return;
    case 4: qk_gemm_rows(a, n, at, lda, 4, w, k, 2, acc); return;
    case 3: qk_gemm_rows(a, n, at, lda, 3, w, k, 2, acc); return;
    case 2: qk_gemm_rows(a, n, at, lda, 2, w, k, 2, acc); return;
    case -8: qk_gemm_rows(a, n, at, lda, 8, w, k, 1, acc); return;
    case -7: qk_gemm_rows(a, n, at, lda, 7, w, k, 1, acc); return;
    case -6: qk_gemm_rows(a, n, at, lda, 6, w, k, 1, acc); return;
    case -5: qk_gemm_rows(a, n, at, lda, 5, w, k, 1, acc); return;
    case -4: qk_gemm_rows(a, n, at, lda, 4, w, k, 1, acc); return;
    case -3: qk_gemm_rows(a, n, at, lda, 3, w, k, 1, acc); return;
    case -2: qk_gemm_rows(a, n, at, lda, 2, w, k, 1, acc); return;
    default:
        for (j = 0; j < blocks; j++)
            qk_gemm_row(a, n, at, w + (ptrdiff_t)64 * k * n * j, k, acc + (ptrdiff_t)16 * j);
    }
}
#endif
