//! chunk requant_fixed_sse2
//! template Y=s8,u8 R=single,double,shift
//! uses requant_each_$y$r requant_store8_$y
/* requant_tile$r on vectors of 128 bits, four columns at a time: see requant_fixed_avx2. Two numbers
 * of 64 bits are shifted one after the other, as SSE2 knows but one count. */
#if defined(__SSE2__) && !defined(__AVX2__)
static inline __m128i qk_fixed_shift_$y$r(__m128i v, __m128i n) {
    __m128d a = _mm_castsi128_pd(_mm_srl_epi64(v, n));
    __m128d b = _mm_castsi128_pd(_mm_srl_epi64(v, _mm_unpackhi_epi64(n, n)));
    return _mm_castpd_si128(_mm_shuffle_pd(a, b, 2));
}

/* The lower halves of v * 2^-n. */
static inline __m128i qk_fixed_round_$y$r(__m128i v, __m128i n) {
    __m128i raise = _mm_set1_epi64x(INT64_MIN), one = _mm_set1_epi64x(1), half;
    v = _mm_add_epi64(v, raise);
    half = qk_fixed_shift_$y$r(raise, _mm_sub_epi64(_mm_set1_epi64x(64), n)); /* 2^(n - 1) */
    //! if R=double
    n = _mm_sub_epi64(n, _mm_set1_epi64x(31));
    half = _mm_sub_epi64(_mm_srli_epi64(half, 31), one);
    v = _mm_srli_epi64(_mm_add_epi64(v, _mm_set1_epi64x(1073741824)), 31);
    v = _mm_add_epi64(v, _mm_srli_epi64(v, 32));
    raise = _mm_srli_epi64(raise, 31);
    //! else
    (void)one;
    //! end
    v = qk_fixed_shift_$y$r(_mm_add_epi64(v, half), n);
    return _mm_sub_epi64(v, qk_fixed_shift_$y$r(raise, n));
}

/* a * m * 2^k, of which SSE2 has the unsigned product alone. */
static inline __m128i qk_fixed_$y$r(__m128i a, __m128i m, __m128i k) {
    __m128i n = _mm_sub_epi32(_mm_setzero_si128(), k), low = _mm_set1_epi64x(0xffffffff);
    //! if R=shift
    __m128i even = _mm_and_si128(a, low), odd = _mm_srli_epi64(a, 32), less = _mm_srli_epi32(a, 31);
    (void)m;
    //! else
    __m128i even = _mm_mul_epu32(a, m);
    __m128i odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), _mm_srli_epi64(m, 32));
    __m128i less = _mm_add_epi32(_mm_and_si128(_mm_srai_epi32(a, 31), m),
                                 _mm_and_si128(_mm_srai_epi32(m, 31), a));
    //! end
    even = _mm_sub_epi64(even, _mm_slli_epi64(less, 32));
    odd = _mm_sub_epi64(odd, _mm_andnot_si128(low, less));
    even = qk_fixed_round_$y$r(even, _mm_and_si128(n, low));
    odd = qk_fixed_round_$y$r(odd, _mm_srli_epi64(n, 32));
    return _mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi64(odd, 32));
}

static void qk_requant_tile_$y$r(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    //! if R=shift
    __m128i large = _mm_set1_epi32(-1);
    //! else
    __m128i large = _mm_set1_epi32(-32);
    //! end
    __m128i least = _mm_set1_epi16((int16_t)lo), most = _mm_set1_epi16((int16_t)hi);
    int32_t i, j;
    for (j = 0; j < n; j += 4) {
        int32_t left = n - j < 4 ? n - j : 4, four;
        __m128i add = _mm_loadu_si128((const __m128i *)(const void *)(bias + j));
        __m128i m = _mm_loadu_si128((const __m128i *)(const void *)(mul + j));
        __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(shift + j));
        if (_mm_movemask_epi8(_mm_cmpgt_epi32(k, large))) {
            qk_requant_each_$y$r(acc + j, rows, left, bias + j, mul + j, shift + j, yz, lo, hi, y + j,
                               step);
            continue;
        }
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + (ptrdiff_t)32 * i + j;
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)a);
            v = qk_fixed_$y$r(_mm_add_epi32(v, add), m, k);
            v = _mm_packs_epi32(_mm_add_epi32(v, _mm_set1_epi32(yz)), v);
            v = _mm_min_epi16(_mm_max_epi16(v, least), most);
            //! if Y=s8
            four = _mm_cvtsi128_si32(_mm_packs_epi16(v, v));
            //! else
            four = _mm_cvtsi128_si32(_mm_packus_epi16(v, v));
            //! end
            memcpy(y + i * step + j, &four, (size_t)left);
        }
    }
}
#endif
