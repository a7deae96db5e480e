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
/* y[i * step + j] = saturate(round_half_even((acc[i * 32 + j] + bias[j]) * mul[j] * 2^shift[j]) +
 * yz), for i < rows and j < n <= 32. The tables are filled up to a multiple of 16. Vector units
 * that have float32 do what qk_requant computes in integers, bit for bit: multipliers are 0 below
 * 2^-102, and above 2^64 they saturate all the same. */
#if defined(__SSE2__) && !defined(QXC_INTEGER_ONLY)
static void qk_requant_store_$y(const $Y *from, int32_t n, $Y *y) {
    if (n >= 16)
        memcpy(y, from, 16);
    else if (n == 8)
        memcpy(y, from, 8);
    else
        memcpy(y, from, (size_t)n);
}
#endif
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
    (void)qk_requant, (void)qk_saturate; /* other processors use them */
    for (j = 0; j < n; j += 16) {
        __m512i add = _mm512_loadu_si512(bias + j);
        __m512 m = qk_multiplier16_$y(mul + j, shift + j);
        for (i = 0; i < rows; i++) {
            __m512i s = _mm512_add_epi32(_mm512_loadu_si512(acc + 32 * i + j), add);
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
#elif defined(__AVX2__) && !defined(QXC_INTEGER_ONLY)
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
    (void)qk_requant, (void)qk_saturate; /* other processors use them */
    for (j = 0; j < n; j += 16) {
        __m256i b0 = _mm256_loadu_si256((const __m256i *)(const void *)(bias + j));
        __m256i b1 = _mm256_loadu_si256((const __m256i *)(const void *)(bias + j + 8));
        __m256 m0 = qk_multiplier8_$y(mul + j, shift + j);
        __m256 m1 = qk_multiplier8_$y(mul + j + 8, shift + j + 8);
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + 32 * i + j;
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
#elif defined(__SSE2__) && !defined(QXC_INTEGER_ONLY)
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
    int32_t i, j, l;
    (void)qk_requant, (void)qk_saturate; /* other processors use them */
    for (j = 0; j < n; j += 16) {
        for (l = 0; l < 4; l++) {
            add[l] = _mm_loadu_si128((const __m128i *)(const void *)(bias + j + 4 * l));
            m[l] = qk_multiplier4_$y(mul + j + 4 * l, shift + j + 4 * l);
        }
        for (i = 0; i < rows; i++) {
            const int32_t *a = acc + 32 * i + j;
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
#else
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
#endif
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
