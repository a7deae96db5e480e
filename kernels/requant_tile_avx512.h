//! chunk requant_tile_avx512
//! template Y=s8,u8
//! uses requant_each_$y requant_store_$y
/* requant_tile on vectors of 512 bits, which do in float32 what qk_requant
 * computes in integers, bit for bit: multipliers are 0 below 2^-102, and above 2^64
 * they saturate all the same. */
#if defined(__AVX512BW__) && !defined(QXC_INTEGER_ONLY)
static inline __m512 qk_multiplier16_$y(const int32_t *mul, const int32_t *shift) {
    __m512i k = _mm512_max_epi32(_mm512_loadu_si512(shift), _mm512_set1_epi32(-126));
    k = _mm512_add_epi32(_mm512_min_epi32(k, _mm512_set1_epi32(64)), _mm512_set1_epi32(127));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(mul)),
                         _mm512_castsi512_ps(_mm512_slli_epi32(k, 23)));
}

static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    __m512 least = _mm512_set1_ps((float)(lo - yz)), most = _mm512_set1_ps((float)(hi - yz));
    __m512i z = _mm512_set1_epi32(yz);
    int32_t i, j;
    (void)qk_requant_each_$y; /* other processors use it */
    for (j = 0; j < n; j += 16) {
        __m512i add = _mm512_loadu_si512(bias + j);
        __m512 m = qk_multiplier16_$y(mul + j, shift + j);
        for (i = 0; i < rows; i++) {
            __m512i s = _mm512_add_epi32(_mm512_loadu_si512(acc + (ptrdiff_t)32 * i + j), add);
            __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(s), m);
            __m128i q;
            $Y *to = y + i * step + j;
            v = _mm512_min_ps(_mm512_max_ps(v, least), most);
            q = _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(v), z));
            if (n - j >= 16) {
                _mm_storeu_si128((__m128i *)(void *)to, q);
            } else {
                $Y rest[16];
                _mm_storeu_si128((__m128i *)(void *)rest, q);
                qk_requant_store_$y(rest, n - j, to);
            }
        }
    }
}
#endif
