//! chunk requant_tile_sse2
//! template Y=s8,u8
//! uses requant_each_$y requant_store_$y
/* requant_tile on vectors of 128 bits, which do in float32 what qk_requant
 * computes in integers, bit for bit: multipliers are 0 below 2^-102, and above 2^64
 * they saturate all the same. */
#if defined(__SSE2__) && !defined(__AVX2__) && !defined(QXC_INTEGER_ONLY)
static inline __m128i qk_select_$y(__m128i mask, __m128i a, __m128i b) {
    return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
}

static inline __m128 qk_multiplier4_$y(const int32_t *mul, const int32_t *shift) {
    __m128i k = _mm_loadu_si128((const __m128i *)(const void *)shift);
    __m128i least = _mm_set1_epi32(-126), most = _mm_set1_epi32(64);
    k = qk_select_$y(_mm_cmpgt_epi32(least, k), least, k);
    k = qk_select_$y(_mm_cmpgt_epi32(k, most), most, k);
    k = _mm_slli_epi32(_mm_add_epi32(k, _mm_set1_epi32(127)), 23);
    return _mm_mul_ps(_mm_cvtepi32_ps(_mm_loadu_si128((const __m128i *)(const void *)mul)),
                      _mm_castsi128_ps(k));
}

static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    __m128 least = _mm_set1_ps((float)(lo - yz)), most = _mm_set1_ps((float)(hi - yz)), m[4];
    __m128i z = _mm_set1_epi32(yz), add[4], q[4];
    int32_t i, j;
    ptrdiff_t l;
    (void)qk_requant_each_$y; /* other processors use it */
    for (j = 0; j < n; j += 16) {
        for (l = 0; l < 4; l++) {
            add[l] = _mm_loadu_si128((const __m128i *)(const void *)(bias + j + 4 * l));
            m[l] = qk_multiplier4_$y(mul + j + 4 * l, shift + j + 4 * l);
        }
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + (ptrdiff_t)32 * i + j;
            $Y rest[16];
            for (l = 0; l < 4; l++) {
                __m128i s = _mm_loadu_si128((const __m128i *)(const void *)(a + 4 * l));
                __m128 v = _mm_mul_ps(_mm_cvtepi32_ps(_mm_add_epi32(s, add[l])), m[l]);
                v = _mm_min_ps(_mm_max_ps(v, least), most);
                q[l] = _mm_add_epi32(_mm_cvtps_epi32(v), z);
            }
            q[0] = _mm_packs_epi32(q[0], q[1]);
            q[2] = _mm_packs_epi32(q[2], q[3]);
            //! if Y=s8
            _mm_storeu_si128((__m128i *)(void *)rest, _mm_packs_epi16(q[0], q[2]));
            //! else
            _mm_storeu_si128((__m128i *)(void *)rest, _mm_packus_epi16(q[0], q[2]));
            //! end
            qk_requant_store_$y(rest, n - j, y + i * step + j);
        }
    }
}
#endif
