//! chunk requant_tile_avx2
//! template Y=s8,u8
//! uses requant_each_$y requant_store_$y
/* requant_tile on vectors of 256 bits, which do in float32 what qk_requant
 * computes in integers, bit for bit: multipliers are 0 below 2^-102, and above 2^64
 * they saturate all the same. */
#if defined(__AVX2__) && !defined(__AVX512BW__) && !defined(QXC_INTEGER_ONLY)
static inline __m256 qk_multiplier8_$y(const int32_t *mul, const int32_t *shift) {
    __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)shift);
    k = _mm256_min_epi32(_mm256_max_epi32(k, _mm256_set1_epi32(-126)), _mm256_set1_epi32(64));
    k = _mm256_slli_epi32(_mm256_add_epi32(k, _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(
        _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)mul)),
        _mm256_castsi256_ps(k));
}

static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    __m256 least = _mm256_set1_ps((float)(lo - yz)), most = _mm256_set1_ps((float)(hi - yz));
    __m256i z = _mm256_set1_epi32(yz);
    int32_t i, j;
    (void)qk_requant_each_$y; /* other processors use it */
    for (j = 0; j < n; j += 16) {
        __m256i b0 = _mm256_loadu_si256((const __m256i *)(const void *)(bias + j));
        __m256i b1 = _mm256_loadu_si256((const __m256i *)(const void *)(bias + j + 8));
        __m256 m0 = qk_multiplier8_$y(mul + j, shift + j);
        __m256 m1 = qk_multiplier8_$y(mul + j + 8, shift + j + 8);
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + (ptrdiff_t)32 * i + j;
            __m256i s0 = _mm256_loadu_si256((const __m256i *)(const void *)a);
            __m256i s1 = _mm256_loadu_si256((const __m256i *)(const void *)(a + 8));
            __m256 v0 = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(s0, b0)), m0);
            __m256 v1 = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(s1, b1)), m1);
            __m128i q;
            $Y rest[16];
            s0 = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v0, least), most));
            s1 = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v1, least), most));
            s0 = _mm256_packs_epi32(_mm256_add_epi32(s0, z), _mm256_add_epi32(s1, z));
            s0 = _mm256_permute4x64_epi64(s0, 0xd8);
            //! if Y=s8
            q = _mm_packs_epi16(_mm256_castsi256_si128(s0), _mm256_extracti128_si256(s0, 1));
            //! else
            q = _mm_packus_epi16(_mm256_castsi256_si128(s0), _mm256_extracti128_si256(s0, 1));
            //! end
            _mm_storeu_si128((__m128i *)(void *)rest, q);
            qk_requant_store_$y(rest, n - j, y + i * step + j);
        }
    }
}
#endif
