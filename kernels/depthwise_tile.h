//! chunk depthwise_tile
//! template X=s8,u8
//! uses simd
/* acc[r * 32 + i] = sum over t < 2 * pairs of tap[r * 66 + t][c + i] * w[t / 2][c + i][t % 2], for
 * r < rows and i < n; the weights of a pair of taps take 2 * channels bytes. n is 16 or 8, or below
 * 8. */
#if defined(__AVX512BW__)
/* 16 channels of two taps, in pairs of 16 bits. */
static inline __m512i qk_taps16_$x(const $X *a, const $X *b) {
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)a);
    __m128i y = _mm_loadu_si128((const __m128i *)(const void *)b);
    __m256i low = _mm256_castsi128_si256(_mm_unpacklo_epi8(x, y));
    //! if X=s8
    return _mm512_cvtepi8_epi16(_mm256_inserti128_si256(low, _mm_unpackhi_epi8(x, y), 1));
    //! else
    return _mm512_cvtepu8_epi16(_mm256_inserti128_si256(low, _mm_unpackhi_epi8(x, y), 1));
    //! end
}

static inline __m512i qk_weights16_$x(const int8_t *w) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)w));
}

static void qk_depthwise4x16_$x(const $X *const *tap, int32_t pairs,
                                ptrdiff_t c, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0;
    int32_t t;
    for (t = 0; t < 2 * pairs; t += 2, w += 2 * channels) {
        const $X *const *u = tap + t;
        __m512i v = qk_weights16_$x(w + 2 * c);
        s0 = _mm512_add_epi32(s0, _mm512_madd_epi16(qk_taps16_$x(u[0] + c, u[1] + c), v));
        s1 = _mm512_add_epi32(s1, _mm512_madd_epi16(qk_taps16_$x(u[66] + c, u[67] + c), v));
        s2 = _mm512_add_epi32(s2, _mm512_madd_epi16(qk_taps16_$x(u[132] + c, u[133] + c), v));
        s3 = _mm512_add_epi32(s3, _mm512_madd_epi16(qk_taps16_$x(u[198] + c, u[199] + c), v));
    }
    _mm512_storeu_si512(acc, s0);
    _mm512_storeu_si512(acc + 32, s1);
    _mm512_storeu_si512(acc + 64, s2);
    _mm512_storeu_si512(acc + 96, s3);
}

static void qk_depthwise1x16_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, const int8_t *w, ptrdiff_t channels,
                                int32_t *acc) {
    __m512i s = _mm512_setzero_si512();
    int32_t t;
    for (t = 0; t < 2 * pairs; t += 2, w += 2 * channels) {
        const $X *a = tap[t] + c, *b = tap[t + 1] + c;
        __m512i v = qk_weights16_$x(w + 2 * c);
        s = _mm512_add_epi32(s, _mm512_madd_epi16(qk_taps16_$x(a, b), v));
    }
    _mm512_storeu_si512(acc, s);
}
#endif
#if defined(__AVX2__)
/* 8 channels of two taps, in pairs of 16 bits. */
static inline __m256i qk_taps8_$x(const $X *a, const $X *b) {
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a);
    __m128i y = _mm_loadl_epi64((const __m128i *)(const void *)b);
    //! if X=s8
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
    //! else
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x, y));
    //! end
}

static inline __m256i qk_weights8_$x(const int8_t *w) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)w));
}

static void qk_depthwise4x8_$x(const $X *const *tap, int32_t pairs,
                               ptrdiff_t c, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
    int32_t t;
    for (t = 0; t < 2 * pairs; t += 2, w += 2 * channels) {
        const $X *const *u = tap + t;
        __m256i v = qk_weights8_$x(w + 2 * c);
        s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(qk_taps8_$x(u[0] + c, u[1] + c), v));
        s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(qk_taps8_$x(u[66] + c, u[67] + c), v));
        s2 = _mm256_add_epi32(s2, _mm256_madd_epi16(qk_taps8_$x(u[132] + c, u[133] + c), v));
        s3 = _mm256_add_epi32(s3, _mm256_madd_epi16(qk_taps8_$x(u[198] + c, u[199] + c), v));
    }
    _mm256_storeu_si256((__m256i *)(void *)acc, s0);
    _mm256_storeu_si256((__m256i *)(void *)(acc + 32), s1);
    _mm256_storeu_si256((__m256i *)(void *)(acc + 64), s2);
    _mm256_storeu_si256((__m256i *)(void *)(acc + 96), s3);
}

static void qk_depthwise1x8_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, const int8_t *w, ptrdiff_t channels,
                               int32_t *acc) {
    __m256i s = _mm256_setzero_si256();
    int32_t t;
    for (t = 0; t < 2 * pairs; t += 2, w += 2 * channels) {
        const $X *a = tap[t] + c, *b = tap[t + 1] + c;
        __m256i v = qk_weights8_$x(w + 2 * c);
        s = _mm256_add_epi32(s, _mm256_madd_epi16(qk_taps8_$x(a, b), v));
    }
    _mm256_storeu_si256((__m256i *)(void *)acc, s);
}
#elif defined(__SSE2__)
static void qk_depthwise1x8_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, const int8_t *w, ptrdiff_t channels,
                               int32_t *acc) {
    __m128i s0 = _mm_setzero_si128(), s1 = s0, zero = s0;
    int32_t t;
    for (t = 0; t < 2 * pairs; t += 2, w += 2 * channels) {
        const $X *a = tap[t] + c, *b = tap[t + 1] + c;
        __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)a);
        __m128i y = _mm_loadl_epi64((const __m128i *)(const void *)b);
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(w + 2 * c));
        __m128i sign = _mm_cmpgt_epi8(zero, v), xy = _mm_unpacklo_epi8(x, y);
        //! if X=s8
        __m128i high = _mm_cmpgt_epi8(zero, xy);
        //! else
        __m128i high = zero;
        //! end
        s0 = _mm_add_epi32(
            s0, _mm_madd_epi16(_mm_unpacklo_epi8(xy, high), _mm_unpacklo_epi8(v, sign)));
        s1 = _mm_add_epi32(
            s1, _mm_madd_epi16(_mm_unpackhi_epi8(xy, high), _mm_unpackhi_epi8(v, sign)));
    }
    _mm_storeu_si128((__m128i *)(void *)acc, s0);
    _mm_storeu_si128((__m128i *)(void *)(acc + 4), s1);
}
#endif

static void qk_depthwise_any_$x(const $X *const *tap, int32_t pairs, ptrdiff_t c, int32_t n, const int8_t *w,
                                ptrdiff_t channels, int32_t *acc) {
    int32_t t, i;
    for (i = 0; i < n; i++)
        acc[i] = 0;
    for (t = 0; t < 2 * pairs; t += 2, w += 2 * channels) {
        const $X *a = tap[t] + c, *b = tap[t + 1] + c;
        const int8_t *v = w + 2 * c;
        for (i = 0; i < n; i++, v += 2)
            acc[i] += a[i] * v[0] + b[i] * v[1];
    }
}

static void qk_depthwise_tile_$x(const $X *const *tap, int32_t rows,
                                 int32_t pairs, ptrdiff_t c, int32_t n, const int8_t *w,
                                 ptrdiff_t channels, int32_t *acc) {
    int32_t r;
    for (r = 0; r < rows; r++, tap += 66, acc += 32) {
#if defined(__AVX512BW__)
        if (n == 16) {
            if (r == 0 && rows == 4) {
                qk_depthwise4x16_$x(tap, pairs, c, w, channels, acc);
                return;
            }
            qk_depthwise1x16_$x(tap, pairs, c, w, channels, acc);
            continue;
        }
#endif
#if defined(__AVX2__)
        if (n >= 8 && r == 0 && rows == 4) {
            qk_depthwise4x8_$x(tap, pairs, c, w, channels, acc);
            if (n == 16)
                qk_depthwise4x8_$x(tap, pairs, c + 8, w, channels, acc + 8);
            return;
        }
#endif
#if defined(__SSE2__)
        if (n >= 8) {
            qk_depthwise1x8_$x(tap, pairs, c, w, channels, acc);
            if (n == 16)
                qk_depthwise1x8_$x(tap, pairs, c + 8, w, channels, acc + 8);
            continue;
        }
#endif
        qk_depthwise_any_$x(tap, pairs, c, n, w, channels, acc);
    }
}
