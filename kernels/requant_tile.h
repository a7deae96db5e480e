//! chunk requant_tile
//! template Y=s8,u8,s16,u16,f32,s32
//! uses saturate requant simd if Y!=f32,s32
/* A tile of sums to results, rows of 32 sums to rows of n <= 32 results. */
//! if Y=f32
/* y[i * step + j] = (float)(acc[i * 32 + j] + bias[j]) * scale[j], for i < rows, j < n <= 32. */
static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const float *scale, float *y, ptrdiff_t step) {
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j++)
            y[j] = (float)(int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]) * scale[j];
}
//! end
//! if Y=s32
/* y[i * step + j] = acc[i * 32 + j] + bias[j], for i < rows, j < n <= 32. */
static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               int32_t *y, ptrdiff_t step) {
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j++)
            y[j] = (int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]);
}
//! end
//! if Y=s8,u8
/* Sixteen sums to sixteen bytes. Vector units that have float32 do what qk_requant computes in
 * integers, bit for bit: shift is cut to where the result is 0 or saturates anyway. */
#if defined(__AVX512BW__) && !defined(QXC_INTEGER_ONLY)
static void qk_requant16_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                            const int32_t *shift, int32_t yz, int32_t lo, int32_t hi, $Y *y) {
    __m512i k = _mm512_max_epi32(_mm512_loadu_si512(shift), _mm512_set1_epi32(-126));
    __m512i p = _mm512_slli_epi32(
        _mm512_add_epi32(_mm512_min_epi32(k, _mm512_set1_epi32(64)), _mm512_set1_epi32(127)), 23);
    __m512 m = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(mul)), _mm512_castsi512_ps(p));
    __m512i s = _mm512_add_epi32(_mm512_loadu_si512(acc), _mm512_loadu_si512(bias));
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(s), m);
    v = _mm512_max_ps(v, _mm512_set1_ps((float)(lo - yz)));
    v = _mm512_min_ps(v, _mm512_set1_ps((float)(hi - yz)));
    s = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(yz));
    _mm_storeu_si128((__m128i *)(void *)y, _mm512_cvtepi32_epi8(s));
}
#elif defined(__AVX2__) && !defined(QXC_INTEGER_ONLY)
static __m256i qk_requant8_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                              const int32_t *shift, int32_t yz, int32_t lo, int32_t hi) {
    __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)shift), s, p;
    __m256 m, v;
    k = _mm256_max_epi32(k, _mm256_set1_epi32(-126));
    k = _mm256_min_epi32(k, _mm256_set1_epi32(64));
    p = _mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23);
    m = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)mul));
    m = _mm256_mul_ps(m, _mm256_castsi256_ps(p));
    s = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(const void *)acc),
                         _mm256_loadu_si256((const __m256i *)(const void *)bias));
    v = _mm256_mul_ps(_mm256_cvtepi32_ps(s), m);
    v = _mm256_max_ps(v, _mm256_set1_ps((float)(lo - yz)));
    v = _mm256_min_ps(v, _mm256_set1_ps((float)(hi - yz)));
    return _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(yz));
}

static void qk_requant16_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                            const int32_t *shift, int32_t yz, int32_t lo, int32_t hi, $Y *y) {
    __m256i a = qk_requant8_$y(acc, bias, mul, shift, yz, lo, hi);
    __m256i b = qk_requant8_$y(acc + 8, bias + 8, mul + 8, shift + 8, yz, lo, hi);
    __m256i c = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    __m128i low = _mm256_castsi256_si128(c), high = _mm256_extracti128_si256(c, 1);
    //! if Y=s8
    _mm_storeu_si128((__m128i *)(void *)y, _mm_packs_epi16(low, high));
    //! else
    _mm_storeu_si128((__m128i *)(void *)y, _mm_packus_epi16(low, high));
    //! end
}
#elif defined(__SSE2__) && !defined(QXC_INTEGER_ONLY)
static __m128i qk_requant4_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                              const int32_t *shift, int32_t yz, int32_t lo, int32_t hi) {
    __m128i k = _mm_loadu_si128((const __m128i *)(const void *)shift);
    __m128i least = _mm_set1_epi32(-126), most = _mm_set1_epi32(64), out, s, p;
    __m128 m, v;
    out = _mm_cmpgt_epi32(least, k);
    k = _mm_or_si128(_mm_and_si128(out, least), _mm_andnot_si128(out, k));
    out = _mm_cmpgt_epi32(k, most);
    k = _mm_or_si128(_mm_and_si128(out, most), _mm_andnot_si128(out, k));
    p = _mm_slli_epi32(_mm_add_epi32(k, _mm_set1_epi32(127)), 23);
    m = _mm_cvtepi32_ps(_mm_loadu_si128((const __m128i *)(const void *)mul));
    m = _mm_mul_ps(m, _mm_castsi128_ps(p));
    s = _mm_add_epi32(_mm_loadu_si128((const __m128i *)(const void *)acc),
                      _mm_loadu_si128((const __m128i *)(const void *)bias));
    v = _mm_mul_ps(_mm_cvtepi32_ps(s), m);
    v = _mm_max_ps(v, _mm_set1_ps((float)(lo - yz)));
    v = _mm_min_ps(v, _mm_set1_ps((float)(hi - yz)));
    return _mm_add_epi32(_mm_cvtps_epi32(v), _mm_set1_epi32(yz));
}

static void qk_requant16_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                            const int32_t *shift, int32_t yz, int32_t lo, int32_t hi, $Y *y) {
    __m128i a = qk_requant4_$y(acc, bias, mul, shift, yz, lo, hi);
    __m128i b = qk_requant4_$y(acc + 4, bias + 4, mul + 4, shift + 4, yz, lo, hi);
    __m128i c = qk_requant4_$y(acc + 8, bias + 8, mul + 8, shift + 8, yz, lo, hi);
    __m128i d = qk_requant4_$y(acc + 12, bias + 12, mul + 12, shift + 12, yz, lo, hi);
    a = _mm_packs_epi32(a, b);
    c = _mm_packs_epi32(c, d);
    //! if Y=s8
    _mm_storeu_si128((__m128i *)(void *)y, _mm_packs_epi16(a, c));
    //! else
    _mm_storeu_si128((__m128i *)(void *)y, _mm_packus_epi16(a, c));
    //! end
}
#else
static void qk_requant16_$y(const int32_t *acc, const int32_t *bias, const int32_t *mul,
                            const int32_t *shift, int32_t yz, int32_t lo, int32_t hi, $Y *y) {
    int32_t j;
    for (j = 0; j < 16; j++) {
        int32_t s = (int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]);
        y[j] = ($Y)qk_saturate(qk_requant(s, mul[j], shift[j]) + yz, lo, hi);
    }
}
#endif

/* y[i * step + j] = saturate(round_half_even((acc[i * 32 + j] + bias[j]) * mul[j] * 2^shift[j]) +
 * yz), for i < rows and j < n <= 32. The tables are filled up to a multiple of 16. */
static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    $Y rest[16];
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step) {
        for (j = 0; j + 16 <= n; j += 16)
            qk_requant16_$y(acc + j, bias + j, mul + j, shift + j, yz, lo, hi, y + j);
        if (j < n) {
            qk_requant16_$y(acc + j, bias + j, mul + j, shift + j, yz, lo, hi, rest);
            memcpy(y + j, rest, (size_t)(n - j));
        }
    }
}
//! end
//! if Y=s16,u16
/* y[i * step + j] = saturate(round_half_even((acc[i * 32 + j] + bias[j]) * mul[j] * 2^shift[j]) +
 * yz), for i < rows and j < n <= 32. */
static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j++) {
            int32_t s = (int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]);
            y[j] = ($Y)qk_saturate(qk_requant(s, mul[j], shift[j]) + yz, lo, hi);
        }
}
//! end
