//! chunk requant_fixed_avx2
//! template Y=s8,u8 R=single,double,shift
//! uses requant_each_$y$r requant_store8_$y
/* requant_tile$r on vectors of 256 bits, eight columns at a time. Where one of them has a multiplier
 * of 1/2 (`shift`: 1) or more, which is rare, all eight are done one by one. */
#if defined(__AVX2__) && !defined(__AVX512BW__)
//! if R=shift
/* a * 2^k, k < 0: the floor and the last bit that is cut off. */
static inline __m256i qk_fixed_$y$r(__m256i a, __m256i m, __m256i k) {
    __m256i n = _mm256_sub_epi32(_mm256_setzero_si256(), k), one = _mm256_set1_epi32(1);
    __m256i cut = _mm256_srav_epi32(a, _mm256_sub_epi32(n, one));
    (void)m;
    return _mm256_add_epi32(_mm256_srav_epi32(a, n), _mm256_and_si256(cut, one));
}
//! else
/* The lower halves of v * 2^-n for products v of 64 bits, n > 31. Raised by a power of two they are
 * unsigned, which AVX2 can shift. */
static inline __m256i qk_fixed_round_$y$r(__m256i v, __m256i n) {
    __m256i one = _mm256_set1_epi64x(1), raise = _mm256_set1_epi64x(INT64_MIN), half;
    v = _mm256_add_epi64(v, raise);
    //! if R=double
    v = _mm256_srli_epi64(_mm256_add_epi64(v, _mm256_set1_epi64x(1073741824)), 31);
    raise = _mm256_srli_epi64(raise, 31);
    n = _mm256_sub_epi64(n, _mm256_set1_epi64x(31));
    /* half away from zero: one less where v is below what it was raised by */
    v = _mm256_add_epi64(v, _mm256_sub_epi64(_mm256_srli_epi64(v, 32), one));
    //! end
    half = _mm256_sllv_epi64(one, _mm256_sub_epi64(n, one));
    v = _mm256_srlv_epi64(_mm256_add_epi64(v, half), n);
    return _mm256_sub_epi64(v, _mm256_srlv_epi64(raise, n));
}

/* a * m * 2^k, k < -31. */
static inline __m256i qk_fixed_$y$r(__m256i a, __m256i m, __m256i k) {
    __m256i n = _mm256_sub_epi32(_mm256_setzero_si256(), k), even, odd;
    even = qk_fixed_round_$y$r(_mm256_mul_epi32(a, m),
                              _mm256_and_si256(n, _mm256_set1_epi64x(0xffffffff)));
    odd = qk_fixed_round_$y$r(_mm256_mul_epi32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(m, 32)),
                             _mm256_srli_epi64(n, 32));
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
//! end

static void qk_requant_tile_$y$r(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    //! if R=shift
    __m256i large = _mm256_set1_epi32(-1);
    //! else
    __m256i large = _mm256_set1_epi32(-32);
    //! end
    __m256i z = _mm256_set1_epi32(yz);
    __m128i least = _mm_set1_epi16((int16_t)lo), most = _mm_set1_epi16((int16_t)hi);
    int32_t i, j;
    for (j = 0; j < n; j += 8) {
        __m256i add = _mm256_loadu_si256((const __m256i *)(const void *)(bias + j));
        __m256i m = _mm256_loadu_si256((const __m256i *)(const void *)(mul + j));
        __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)(shift + j));
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(k, large))) {
            qk_requant_each_$y$r(acc + j, rows, n - j < 8 ? n - j : 8, bias + j, mul + j, shift + j,
                               yz, lo, hi, y + j, step);
            continue;
        }
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + (ptrdiff_t)32 * i + j;
            __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)a);
            __m128i q;
            v = _mm256_add_epi32(qk_fixed_$y$r(_mm256_add_epi32(v, add), m, k), z);
            q = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
            q = _mm_min_epi16(_mm_max_epi16(q, least), most);
            //! if Y=s8
            q = _mm_packs_epi16(q, q);
            //! else
            q = _mm_packus_epi16(q, q);
            //! end
            qk_requant_store8_$y(q, n - j, y + i * step + j);
        }
    }
}
#endif
