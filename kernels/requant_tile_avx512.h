//! chunk requant_tile_avx512
//! template Y=s8,u8
//! uses requant_each_$y requant_store_$y
/* requant_tile on vectors of 512 bits, which do in float32 what qk_requant
 * computes in integers, bit for bit: multipliers are 0 below 2^-102, and above 2^64
 * they saturate all the same. Masks of ones (maskz) are free: without them gcc's header passes a
 * vector without a value on, of which C++ warns, and of loads from tables of 16 where this is not
 * reached it warns, too. */
#if defined(__AVX512BW__) && !defined(QXC_INTEGER_ONLY)
static inline __m512 qk_multiplier16_$y(const int32_t *mul, const int32_t *shift) {
    __m512i k = _mm512_maskz_loadu_epi32(0xffff, shift);
    k = _mm512_maskz_max_epi32(0xffff, k, _mm512_set1_epi32(-126));
    k = _mm512_maskz_min_epi32(0xffff, k, _mm512_set1_epi32(64));
    k = _mm512_add_epi32(k, _mm512_set1_epi32(127));
    return _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_loadu_epi32(0xffff, mul)),
                         _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, k, 23)));
}

/* As 32-bit integers, from which yz is missing. What is below their range saturates all the same. */
static inline __m512i qk_rounded16_$y(const int32_t *acc, __m512i add, __m512 m, __m512 most) {
    __m512i s = _mm512_add_epi32(_mm512_loadu_si512(acc), add);
    __m512 v = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, s), m);
    return _mm512_maskz_cvtps_epi32(0xffff, _mm512_maskz_min_ps(0xffff, v, most));
}

/* 32 columns of two rows at a time, the last of an odd number twice. Packing takes four columns here,
 * four there, which one permutation mends. */
static void qk_requant_rows_$y(const int32_t *acc, int32_t rows, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    __m512i order = _mm512_set_epi32(15, 11, 7, 3, 13, 9, 5, 1, 14, 10, 6, 2, 12, 8, 4, 0);
    __m512i z = _mm512_set1_epi16((int16_t)yz), least = _mm512_set1_epi8((int8_t)lo), p, q;
    __m512i b0 = _mm512_maskz_loadu_epi32(0xffff, bias);
    __m512i b1 = _mm512_maskz_loadu_epi32(0xffff, bias + 16);
    __m512 m0 = qk_multiplier16_$y(mul, shift), m1 = qk_multiplier16_$y(mul + 16, shift + 16);
    __m512 most = _mm512_set1_ps((float)(hi - yz));
    int32_t i;
    for (i = 0; i < rows; i += 2, acc += 64, y += 2 * step) {
        ptrdiff_t next = i + 1 < rows ? 1 : 0;
        p = _mm512_packs_epi32(qk_rounded16_$y(acc, b0, m0, most),
                               qk_rounded16_$y(acc + 32 * next, b0, m0, most));
        q = _mm512_packs_epi32(qk_rounded16_$y(acc + 16, b1, m1, most),
                               qk_rounded16_$y(acc + 16 + 32 * next, b1, m1, most));
        p = _mm512_adds_epi16(p, z);
        q = _mm512_adds_epi16(q, z);
        //! if Y=s8
        p = _mm512_max_epi8(_mm512_packs_epi16(p, q), least);
        //! else
        p = _mm512_max_epu8(_mm512_packus_epi16(p, q), least);
        //! end
        p = _mm512_maskz_permutexvar_epi32(0xffff, order, p);
        _mm256_storeu_si256((__m256i *)(void *)y, _mm512_maskz_extracti64x4_epi64(0xff, p, 0));
        _mm256_storeu_si256((__m256i *)(void *)(y + next * step),
                            _mm512_maskz_extracti64x4_epi64(0xff, p, 1));
    }
}

static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    __m512 least = _mm512_set1_ps((float)(lo - yz)), most = _mm512_set1_ps((float)(hi - yz));
    __m512i z = _mm512_set1_epi32(yz);
    int32_t i, j;
    (void)qk_requant_each_$y; /* other processors use it */
    if (n == 32) {
        qk_requant_rows_$y(acc, rows, bias, mul, shift, yz, lo, hi, y, step);
        return;
    }
    for (j = 0; j < n; j += 16) {
        __m512i add = _mm512_loadu_si512(bias + j);
        __m512 m = qk_multiplier16_$y(mul + j, shift + j);
        for (i = 0; i < rows; i++) {
            __m512i s = _mm512_add_epi32(_mm512_loadu_si512(acc + (ptrdiff_t)32 * i + j), add);
            __m512 v = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, s), m);
            __m128i q;
            $Y *to = y + i * step + j;
            v = _mm512_maskz_min_ps(0xffff, _mm512_maskz_max_ps(0xffff, v, least), most);
            q = _mm512_maskz_cvtepi32_epi8(
                0xffff, _mm512_add_epi32(_mm512_maskz_cvtps_epi32(0xffff, v), z));
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
