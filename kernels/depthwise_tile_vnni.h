//! chunk depthwise_tile_vnni
//! template X=s8,u8
//! uses dot_vnni
/* depthwise_tile of 32 channels and 3 x 3 taps with the dot products of AVX512-VNNI: three taps of a
 * column are interleaved once, for all windows that it belongs to. Vectors hold four channels of each
 * eight, the lower or the higher ones. */
#if defined(QK_VNNI)
typedef struct {
    __m512i low, high;
} qk_both_$x;

static inline __m512i qk_words_$x(const $X *x) { /* 32 bytes as 16 bits each */
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)x));
}

static inline qk_both_$x qk_threes_$x(__m512i ab, __m512i c) {
    qk_both_$x both = {_mm512_unpacklo_epi16(ab, c), _mm512_unpackhi_epi16(ab, c)};
    return both;
}

/* One column, with zeros as fourth taps; signed ones are raised by 128. */
static inline qk_both_$x qk_column_$x(const $X *a, const $X *b, const $X *c) {
    __m512i ab = _mm512_or_si512(qk_words_$x(a), _mm512_slli_epi16(qk_words_$x(b), 8));
    //! if X=s8
    return qk_threes_$x(_mm512_xor_si512(ab, _mm512_set1_epi8(-128)),
                        _mm512_xor_si512(qk_words_$x(c), _mm512_set1_epi16(128)));
    //! else
    return qk_threes_$x(ab, qk_words_$x(c));
    //! end
}

/* Weights of column k, with something as fourth ones. Pairs of taps are 0 1, 2 3, ... of 0 1 2 in the
 * first row of the kernel, 3 4 5, 6 7 8. */
static inline qk_both_$x qk_threes_of_weights_$x(const int8_t *w, ptrdiff_t channels, int32_t k) {
    __m512i even = _mm512_set1_epi16(255), p[5];
    int32_t i;
#pragma GCC unroll 5
    for (i = 0; i < 5; i++)
        p[i] = _mm512_loadu_si512(w + 2 * channels * i);
    if (k == 1)
        return qk_threes_$x(
            _mm512_or_si512(_mm512_srli_epi16(p[0], 8), _mm512_slli_epi16(p[2], 8)),
            _mm512_srli_epi16(p[3], 8));
    i = k / 2;
    return qk_threes_$x(
        _mm512_or_si512(_mm512_and_si512(p[i], even),
                        _mm512_maskz_andnot_epi32(0xffff, even, p[i + 1])),
        p[i + 3]);
}

/* Four windows, each `step` columns behind the one before; made for each constant. */
__attribute__((always_inline)) static inline void
qk_depthwise4x32_$x(const $X *const *tap, ptrdiff_t at, ptrdiff_t apart, int32_t rows, int32_t step,
                    const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    __m512i first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), z = _mm512_setzero_si512();
    __m512i second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    qk_both_$x sum[4], v[3], x;
    int32_t r, k, j;
    sum[0].low = sum[0].high = z;
#pragma GCC unroll 3
    for (k = 0; k < 3; k++) {
        v[k] = qk_threes_of_weights_$x(w, channels, k);
        //! if X=s8
        sum[0].low = qk_dot4(sum[0].low, _mm512_set1_epi32(0x808080), v[k].low);
        sum[0].high = qk_dot4(sum[0].high, _mm512_set1_epi32(0x808080), v[k].high);
        //! end
    }
    sum[0].low = _mm512_sub_epi32(z, sum[0].low); /* makes up for what x is raised by */
    sum[0].high = _mm512_sub_epi32(z, sum[0].high);
    sum[1] = sum[2] = sum[3] = sum[0];
#pragma GCC unroll 12
    for (j = 0; j < 3 * step + 3; j++) {
        const $X *const *u;
        ptrdiff_t from;
        r = j / step < rows ? j / step : rows - 1; /* windows that are not there read what is */
        k = j - r * step < 3 ? j - r * step : 2;
        u = tap + (apart ? k : 66 * r + k);
        from = at + r * apart;
        x = qk_column_$x(u[0] + from, u[3] + from, u[6] + from);
#pragma GCC unroll 4
        for (r = 0; r < 4; r++)
            if (j >= r * step && j < r * step + 3) {
                sum[r].low = qk_dot4(sum[r].low, x.low, v[j - r * step].low);
                sum[r].high = qk_dot4(sum[r].high, x.high, v[j - r * step].high);
            }
    }
#pragma GCC unroll 4
    for (r = 0; r < 4; r++, acc += 32) {
        _mm512_storeu_si512(acc, _mm512_permutex2var_epi64(sum[r].low, first, sum[r].high));
        _mm512_storeu_si512(acc + 16, _mm512_permutex2var_epi64(sum[r].low, second, sum[r].high));
    }
}

static void qk_depthwise32_$x(const $X *const *tap, ptrdiff_t at, ptrdiff_t apart, int32_t rows,
                              int32_t step, const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    if (step == 1)
        qk_depthwise4x32_$x(tap, at, apart, rows, 1, w, channels, acc);
    else if (step == 2)
        qk_depthwise4x32_$x(tap, at, apart, rows, 2, w, channels, acc);
    else
        qk_depthwise4x32_$x(tap, at, apart, rows, 3, w, channels, acc);
}
#endif
