//! chunk add_row
//! template T=s8,u8
//! uses simd
/* The first elements of a row of add_q, as many as fill vectors; returns their number. */
#if defined(__AVX2__) && !defined(QXC_INTEGER_ONLY)
typedef struct { /* y = round(a * fa + b * fb + more) + yz; `more` is of the zero points */
    double fa, fb, more;
    int32_t yz, lo, hi;
} qk_add_terms_$t;

static inline __m256d qk_add_doubles_$t(const $T *x) { /* of four elements */
    int32_t four;
    memcpy(&four, x, 4);
    //! if T=s8
    return _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)));
    //! else
    return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
    //! end
}

static inline __m256 qk_add_floats_$t(const $T *x) { /* of eight */
    __m128i eight = _mm_loadl_epi64((const __m128i *)(const void *)x);
    //! if T=s8
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
    //! else
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
    //! end
}

/* 16 elements. All products and sums are below 2^53 steps of one size (requant_add), which double
 * holds exactly. */
static void qk_add_exactly_$t(const qk_add_terms_$t *t, const $T *a, const $T *b, $T *y) {
    __m256d least = _mm256_set1_pd(t->lo - t->yz), most = _mm256_set1_pd(t->hi - t->yz), u, v;
    int32_t i, j, q[4];
    for (i = 0; i < 16; i += 4) {
        u = _mm256_mul_pd(qk_add_doubles_$t(a + i), _mm256_set1_pd(t->fa));
        v = _mm256_mul_pd(qk_add_doubles_$t(b + i), _mm256_set1_pd(t->fb));
        u = _mm256_add_pd(_mm256_add_pd(u, v), _mm256_set1_pd(t->more));
        u = _mm256_min_pd(_mm256_max_pd(u, least), most);
        _mm_storeu_si128((__m128i *)(void *)q, _mm256_cvtpd_epi32(u));
        for (j = 0; j < 4; j++)
            y[i + j] = ($T)(q[j] + t->yz);
    }
}

/* 16 elements in float32, whose rounding errors cannot move a result but near a tie: where the sum is
 * `far` or more from the integer next to it, nothing is written and the result is 0. */
static inline int qk_add_nearly_$t(const qk_add_terms_$t *t, __m256 far, const $T *a, const $T *b,
                                   $T *y) {
    __m256 fa = _mm256_set1_ps((float)t->fa), fb = _mm256_set1_ps((float)t->fb);
    __m256 more = _mm256_set1_ps((float)t->more), sign = _mm256_set1_ps(-0.0f), u, v, p, q;
    __m256 least = _mm256_set1_ps((float)(t->lo - t->yz)), most = _mm256_set1_ps((float)(t->hi - t->yz));
    __m256i s;
    __m128i r;
    u = _mm256_add_ps(_mm256_mul_ps(qk_add_floats_$t(b), fb), more);
    v = _mm256_add_ps(_mm256_mul_ps(qk_add_floats_$t(b + 8), fb), more);
    u = _mm256_add_ps(_mm256_mul_ps(qk_add_floats_$t(a), fa), u);
    v = _mm256_add_ps(_mm256_mul_ps(qk_add_floats_$t(a + 8), fa), v);
    u = _mm256_min_ps(_mm256_max_ps(u, least), most);
    v = _mm256_min_ps(_mm256_max_ps(v, least), most);
    p = _mm256_round_ps(u, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    q = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    u = _mm256_andnot_ps(sign, _mm256_sub_ps(u, p));
    v = _mm256_andnot_ps(sign, _mm256_sub_ps(v, q));
    if (_mm256_movemask_ps(_mm256_cmp_ps(_mm256_max_ps(u, v), far, _CMP_GE_OQ)))
        return 0;
    s = _mm256_packs_epi32(_mm256_cvtps_epi32(p), _mm256_cvtps_epi32(q));
    s = _mm256_permute4x64_epi64(_mm256_add_epi16(s, _mm256_set1_epi16((int16_t)t->yz)), 0xd8);
    //! if T=s8
    r = _mm_packs_epi16(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    //! else
    r = _mm_packus_epi16(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    //! end
    _mm_storeu_si128((__m128i *)(void *)y, r);
    return 1;
}
#endif

static int32_t qk_add_row_$t(int32_t az, int32_t bz, int32_t yz, int32_t lo, int32_t hi,
                             int32_t shift, int64_t ma, int64_t mb, int32_t n, const $T *a,
                             const $T *b, $T *y) {
    int32_t i = 0;
#if defined(__AVX2__) && !defined(QXC_INTEGER_ONLY)
    qk_add_terms_$t t = {1.0, 0.0, 0.0, yz, lo, hi};
    double most;
    __m256 far;
    for (; shift > 0; shift--)
        t.fa *= 0.5;
    t.fb = (double)mb * t.fa;
    t.fa *= (double)ma;
    t.more = -(az * t.fa + bz * t.fb);
    most = 255.0 * ((t.fa < 0 ? -t.fa : t.fa) + (t.fb < 0 ? -t.fb : t.fb));
    most += t.more < 0 ? -t.more : t.more;
    far = _mm256_set1_ps((float)(0.5 - most / 2097152.0)); /* errors add up to 2^-22 of it */
    for (; i + 16 <= n; i += 16)
        if (!qk_add_nearly_$t(&t, far, a + i, b + i, y + i))
            qk_add_exactly_$t(&t, a + i, b + i, y + i);
#else
    (void)az, (void)bz, (void)yz, (void)lo, (void)hi, (void)shift, (void)ma, (void)mb, (void)n;
    (void)a, (void)b, (void)y;
#endif
    return i;
}
