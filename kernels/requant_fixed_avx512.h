//! chunk requant_fixed_avx512
//! template Y=s8,u8 R=single,double,shift
//! uses requant_each_$y$r requant_store8_$y
/* requant_tile$r on vectors of 512 bits, eight columns as 64-bit integers. Masks of
 * ones: see requant_tile_avx512. */
#if defined(__AVX512BW__)
static inline __m512i qk_fixed_load_$y$r(const int32_t *from) {
    return _mm512_maskz_cvtepi32_epi64(0xff, _mm256_loadu_si256((const __m256i *)(const void *)from));
}

/* v * m * 2^k as qk_requant$r rounds it. Shifts to the left by -1 give 0. */
static inline __m512i qk_fixed_$y$r(__m512i v, __m512i m, __m512i k) {
    __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi64(1), right, half;
    //! if R=double
    __m512i high = _mm512_set1_epi64(INT32_MAX), low = _mm512_set1_epi64(INT32_MIN), down;
    k = _mm512_add_epi64(k, _mm512_set1_epi64(31));
    //! end
    right = _mm512_maskz_max_epi64(0xff, _mm512_sub_epi64(zero, k), zero);
    right = _mm512_maskz_min_epi64(0xff, right, _mm512_set1_epi64(62));
    half = _mm512_maskz_sllv_epi64(0xff, one, _mm512_sub_epi64(right, one));
    //! if R=single
    v = _mm512_maskz_mul_epi32(0xff, v, m);
    //! end
    //! if R=double
    v = _mm512_maskz_sllv_epi64(0xff, v, _mm512_maskz_max_epi64(0xff, k, zero));
    v = _mm512_maskz_min_epi64(0xff, _mm512_maskz_max_epi64(0xff, v, low), high);
    v = _mm512_maskz_mul_epi32(0xff, v, m);
    v = _mm512_maskz_srai_epi64(0xff, _mm512_add_epi64(v, _mm512_set1_epi64(1073741824)), 31);
    down = _mm512_maskz_min_epi64(0xff, right, one);
    down = _mm512_and_si512(_mm512_maskz_srli_epi64(0xff, v, 63), down);
    half = _mm512_sub_epi64(half, down);
    //! end
    //! if R=shift
    (void)m;
    v = _mm512_maskz_sllv_epi64(0xff, v, _mm512_maskz_max_epi64(0xff, k, zero));
    //! end
    return _mm512_maskz_srav_epi64(0xff, _mm512_add_epi64(v, half), right);
}

static void qk_requant_tile_$y$r(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    __m512i least = _mm512_set1_epi64(lo), most = _mm512_set1_epi64(hi), z = _mm512_set1_epi64(yz);
    int32_t i, j;
    (void)qk_requant_each_$y$r; /* other processors use it */
    for (j = 0; j < n; j += 8) {
        __m256i add = _mm256_loadu_si256((const __m256i *)(const void *)(bias + j));
        __m512i m = qk_fixed_load_$y$r(mul + j), k = qk_fixed_load_$y$r(shift + j);
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + (ptrdiff_t)32 * i + j;
            __m256i s = _mm256_loadu_si256((const __m256i *)(const void *)a);
            __m512i v = _mm512_maskz_cvtepi32_epi64(0xff, _mm256_add_epi32(s, add));
            v = _mm512_add_epi64(qk_fixed_$y$r(v, m, k), z);
            v = _mm512_maskz_min_epi64(0xff, _mm512_maskz_max_epi64(0xff, v, least), most);
            qk_requant_store8_$y(_mm512_maskz_cvtepi64_epi8(0xff, v), n - j, y + i * step + j);
        }
    }
}
#endif
