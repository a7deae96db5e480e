//! chunk gemm_tile_vnni
//! uses column
/* gemm_tile with the dot products of AVX512-VNNI. */
#if defined(QK_VNNI)
/* One line of assembly for what _mm512_dpbusd_epi32 does: gcc moves the sums of the intrinsic to
 * memory and back. */
static inline __m512i qk_dot4(__m512i sum, const uint8_t *a, __m512i w) {
    int32_t four;
    memcpy(&four, a, 4);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(_mm512_set1_epi32(four)), "v"(w));
    return sum;
}

static void qk_gemm_4x2(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t *acc) {
    const int8_t *v = w + 64 * (ptrdiff_t)k * n;
    __m512i s00 = _mm512_setzero_si512(), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64, v += 64) {
            __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(v);
            s00 = qk_dot4(s00, a0 + i, w0);
            s01 = qk_dot4(s01, a0 + i, w1);
            s10 = qk_dot4(s10, a1 + i, w0);
            s11 = qk_dot4(s11, a1 + i, w1);
            s20 = qk_dot4(s20, a2 + i, w0);
            s21 = qk_dot4(s21, a2 + i, w1);
            s30 = qk_dot4(s30, a3 + i, w0);
            s31 = qk_dot4(s31, a3 + i, w1);
        }
    }
    _mm512_storeu_si512(acc, s00);
    _mm512_storeu_si512(acc + 16, s01);
    _mm512_storeu_si512(acc + 32, s10);
    _mm512_storeu_si512(acc + 48, s11);
    _mm512_storeu_si512(acc + 64, s20);
    _mm512_storeu_si512(acc + 80, s21);
    _mm512_storeu_si512(acc + 96, s30);
    _mm512_storeu_si512(acc + 112, s31);
}

static void qk_gemm_8x2(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t *acc) {
    const int8_t *v = w + 64 * (ptrdiff_t)k * n;
    __m512i s00 = _mm512_setzero_si512(), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00, s40 = s00, s41 = s00, s50 = s00, s51 = s00, s60 = s00, s61 = s00, s70 = s00, s71 = s00;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda, *a4 = a3 + lda, *a5 = a4 + lda, *a6 = a5 + lda, *a7 = a6 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64, v += 64) {
            __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(v);
            s00 = qk_dot4(s00, a0 + i, w0);
            s01 = qk_dot4(s01, a0 + i, w1);
            s10 = qk_dot4(s10, a1 + i, w0);
            s11 = qk_dot4(s11, a1 + i, w1);
            s20 = qk_dot4(s20, a2 + i, w0);
            s21 = qk_dot4(s21, a2 + i, w1);
            s30 = qk_dot4(s30, a3 + i, w0);
            s31 = qk_dot4(s31, a3 + i, w1);
            s40 = qk_dot4(s40, a4 + i, w0);
            s41 = qk_dot4(s41, a4 + i, w1);
            s50 = qk_dot4(s50, a5 + i, w0);
            s51 = qk_dot4(s51, a5 + i, w1);
            s60 = qk_dot4(s60, a6 + i, w0);
            s61 = qk_dot4(s61, a6 + i, w1);
            s70 = qk_dot4(s70, a7 + i, w0);
            s71 = qk_dot4(s71, a7 + i, w1);
        }
    }
    _mm512_storeu_si512(acc, s00);
    _mm512_storeu_si512(acc + 16, s01);
    _mm512_storeu_si512(acc + 32, s10);
    _mm512_storeu_si512(acc + 48, s11);
    _mm512_storeu_si512(acc + 64, s20);
    _mm512_storeu_si512(acc + 80, s21);
    _mm512_storeu_si512(acc + 96, s30);
    _mm512_storeu_si512(acc + 112, s31);
    _mm512_storeu_si512(acc + 128, s40);
    _mm512_storeu_si512(acc + 144, s41);
    _mm512_storeu_si512(acc + 160, s50);
    _mm512_storeu_si512(acc + 176, s51);
    _mm512_storeu_si512(acc + 192, s60);
    _mm512_storeu_si512(acc + 208, s61);
    _mm512_storeu_si512(acc + 224, s70);
    _mm512_storeu_si512(acc + 240, s71);
}

/* One row of one block: four sums over k hide the latency of the product. */
static void qk_gemm_1x1(const uint8_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a = seg[s] + at;
        for (i = 0; i + 4 <= k; i += 4, a += 16, w += 256) {
            s0 = qk_dot4(s0, a, _mm512_loadu_si512(w));
            s1 = qk_dot4(s1, a + 4, _mm512_loadu_si512(w + 64));
            s2 = qk_dot4(s2, a + 8, _mm512_loadu_si512(w + 128));
            s3 = qk_dot4(s3, a + 12, _mm512_loadu_si512(w + 192));
        }
        for (; i < k; i++, a += 4, w += 64)
            s0 = qk_dot4(s0, a, _mm512_loadu_si512(w));
    }
    s0 = _mm512_add_epi32(_mm512_add_epi32(s0, s1), _mm512_add_epi32(s2, s3));
    _mm512_storeu_si512(acc, s0);
}

static void qk_gemm_4x1(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t *acc) {
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            __m512i w0 = _mm512_loadu_si512(w);
            s0 = qk_dot4(s0, a0 + i, w0);
            s1 = qk_dot4(s1, a1 + i, w0);
            s2 = qk_dot4(s2, a2 + i, w0);
            s3 = qk_dot4(s3, a3 + i, w0);
        }
    }
    _mm512_storeu_si512(acc, s0);
    _mm512_storeu_si512(acc + 32, s1);
    _mm512_storeu_si512(acc + 64, s2);
    _mm512_storeu_si512(acc + 96, s3);
}

static void qk_gemm_8x1(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t *acc) {
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda, *a4 = a3 + lda, *a5 = a4 + lda, *a6 = a5 + lda, *a7 = a6 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            __m512i w0 = _mm512_loadu_si512(w);
            s0 = qk_dot4(s0, a0 + i, w0);
            s1 = qk_dot4(s1, a1 + i, w0);
            s2 = qk_dot4(s2, a2 + i, w0);
            s3 = qk_dot4(s3, a3 + i, w0);
            s4 = qk_dot4(s4, a4 + i, w0);
            s5 = qk_dot4(s5, a5 + i, w0);
            s6 = qk_dot4(s6, a6 + i, w0);
            s7 = qk_dot4(s7, a7 + i, w0);
        }
    }
    _mm512_storeu_si512(acc, s0);
    _mm512_storeu_si512(acc + 32, s1);
    _mm512_storeu_si512(acc + 64, s2);
    _mm512_storeu_si512(acc + 96, s3);
    _mm512_storeu_si512(acc + 128, s4);
    _mm512_storeu_si512(acc + 160, s5);
    _mm512_storeu_si512(acc + 192, s6);
    _mm512_storeu_si512(acc + 224, s7);
}

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i = 0, j;
    if (rows == 8) {
        if (blocks == 2)
            qk_gemm_8x2(a, n, at, lda, w, k, acc);
        else
            qk_gemm_8x1(a, n, at, lda, w, k, acc);
        return;
    }
    for (; i + 4 <= rows; i += 4, at += 4 * lda, acc += 128)
        if (blocks == 2)
            qk_gemm_4x2(a, n, at, lda, w, k, acc);
        else
            qk_gemm_4x1(a, n, at, lda, w, k, acc);
    for (; i < rows; i++, at += lda, acc += 32)
        for (j = 0; j < blocks; j++)
            qk_gemm_1x1(a, n, at, w + (ptrdiff_t)64 * k * n * j, k, acc + (ptrdiff_t)16 * j);
}
#endif
