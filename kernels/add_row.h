//! chunk add_row
//! template T=s8,u8
//! uses simd
/* The first elements of a row of add_q, as many as fill vectors; returns their number. Products are
 * below 2^52 (requant_add), so that double holds them and their sum exactly. */
static int32_t qk_add_row_$t(int32_t az, int32_t bz, int32_t yz, int32_t lo, int32_t hi,
                             int32_t shift, int64_t ma, int64_t mb, int32_t n, const $T *a,
                             const $T *b, $T *y) {
    int32_t i = 0;
#if defined(__AVX2__) && !defined(QXC_INTEGER_ONLY)
    double unit = 1.0;
    for (; shift > 0; shift--)
        unit *= 0.5;
    __m128i za = _mm_set1_epi32(az), zb = _mm_set1_epi32(bz), zy = _mm_set1_epi32(yz);
    __m256d fa = _mm256_set1_pd((double)ma * unit), fb = _mm256_set1_pd((double)mb * unit);
    __m256d least = _mm256_set1_pd((double)(lo - yz)), most = _mm256_set1_pd((double)(hi - yz));
    for (; i + 4 <= n; i += 4) {
        int32_t four;
        __m128i p, q;
        __m256d v;
        memcpy(&four, a + i, 4);
        //! if T=s8
        p = _mm_sub_epi32(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)), za);
        memcpy(&four, b + i, 4);
        q = _mm_sub_epi32(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)), zb);
        //! else
        p = _mm_sub_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)), za);
        memcpy(&four, b + i, 4);
        q = _mm_sub_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)), zb);
        //! end
        v = _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(p), fa),
                          _mm256_mul_pd(_mm256_cvtepi32_pd(q), fb));
        v = _mm256_min_pd(_mm256_max_pd(v, least), most);
        p = _mm_add_epi32(_mm256_cvtpd_epi32(v), zy);
        p = _mm_packs_epi32(p, p);
        //! if T=s8
        four = _mm_cvtsi128_si32(_mm_packs_epi16(p, p));
        //! else
        four = _mm_cvtsi128_si32(_mm_packus_epi16(p, p));
        //! end
        memcpy(y + i, &four, 4);
    }
#else
    (void)az, (void)bz, (void)yz, (void)lo, (void)hi, (void)shift, (void)ma, (void)mb, (void)n;
    (void)a, (void)b, (void)y;
#endif
    return i;
}
