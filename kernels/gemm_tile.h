//! chunk gemm_tile
//! uses simd column
/* acc[i * 32 + j] = sum over the segments a[0..n) and k of a[s][at + i * lda + k] *
 * w[s][k / 4][j][k % 4], for i < rows <= 8 and j < 16 * blocks, blocks <= 2. Weights lie in blocks
 * of 16 columns, [n][k / 4][16][4] each; k counts steps of 4. Sums wrap like int32. */
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__GNUC__)
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
#elif defined(__AVX2__)
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

/* 4 rows x 8 columns. */
static void qk_gemm_4x8(const int16_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
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

static void qk_gemm_1x8(const int16_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
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

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i, j;
    for (j = 0; j < 2 * blocks; j++) {
        const int8_t *v = w + (ptrdiff_t)64 * k * n * (j / 2) + 32 * (j % 2);
        int32_t *to = acc + (ptrdiff_t)8 * j;
        for (i = 0; i + 4 <= rows; i += 4)
            qk_gemm_4x8(a, n, at + i * lda, lda, v, k, to + (ptrdiff_t)32 * i);
        for (; i < rows; i++)
            qk_gemm_1x8(a, n, at + i * lda, v, k, to + (ptrdiff_t)32 * i);
    }
}
#elif defined(__SSE2__)
static inline __m128i qk_four(const int16_t *a) { /* 4 k, twice */
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a);
    return _mm_unpacklo_epi64(x, x);
}

static inline __m128i qk_pairs(__m128i x, __m128i y) { /* adds neighbours: sums of 4 columns */
    __m128i even = _mm_unpacklo_epi64(_mm_shuffle_epi32(x, 0x08), _mm_shuffle_epi32(y, 0x08));
    __m128i odd = _mm_unpacklo_epi64(_mm_shuffle_epi32(x, 0x0d), _mm_shuffle_epi32(y, 0x0d));
    return _mm_add_epi32(even, odd);
}

/* 4 rows x 4 columns. */
static void qk_gemm_4x4(const int16_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
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

static void qk_gemm_1x4(const int16_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
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

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i, j;
    for (j = 0; j < 4 * blocks; j++) {
        const int8_t *v = w + (ptrdiff_t)64 * k * n * (j / 4) + 16 * (j % 4);
        int32_t *to = acc + (ptrdiff_t)4 * j;
        for (i = 0; i + 4 <= rows; i += 4)
            qk_gemm_4x4(a, n, at + i * lda, lda, v, k, to + (ptrdiff_t)32 * i);
        for (; i < rows; i++)
            qk_gemm_1x4(a, n, at + i * lda, v, k, to + (ptrdiff_t)32 * i);
    }
}
#else
/* Two rows by two columns at a time share their loads. */
static void qk_gemm_2x2(const qk_column *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t *acc) {
    int32_t i, s, s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (s = 0; s < n; s++) {
        const qk_column *a0 = seg[s] + at, *a1 = a0 + lda;
        for (i = 0; i < k; i++, a0 += 4, a1 += 4, w += 64) {
            s00 += a0[0] * w[0] + a0[1] * w[1] + a0[2] * w[2] + a0[3] * w[3];
            s01 += a0[0] * w[4] + a0[1] * w[5] + a0[2] * w[6] + a0[3] * w[7];
            s10 += a1[0] * w[0] + a1[1] * w[1] + a1[2] * w[2] + a1[3] * w[3];
            s11 += a1[0] * w[4] + a1[1] * w[5] + a1[2] * w[6] + a1[3] * w[7];
        }
    }
    acc[0] = s00;
    acc[1] = s01;
    if (lda) {
        acc[32] = s10;
        acc[33] = s11;
    }
}

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i, j;
    for (j = 0; j < 16 * blocks; j += 2) {
        const int8_t *v = w + (ptrdiff_t)64 * k * n * (j / 16) + (ptrdiff_t)4 * (j % 16);
        for (i = 0; i < rows; i += 2) /* an odd row stands for two */
            qk_gemm_2x2(a, n, at + i * lda, i + 1 < rows ? lda : 0, v, k,
                        acc + (ptrdiff_t)32 * i + j);
    }
}
#endif
