//! chunk quantize_row
//! template Y=s8,u8,s16,u16
//! uses round_small simd
/* y[i] = saturate(round_half_even(x[i] / scale) + zp), NaN the lowest value of the type. */
static void qk_quantize_row_$y(const float *x, int32_t n, float scale, int32_t zp, int32_t lo,
                               int32_t hi, $Y *y) {
    int32_t i = 0;
    //! if Y=s8,u8
#if defined(__SSE2__)
    __m128 s = _mm_set1_ps(scale), least = _mm_set1_ps((float)(lo - zp));
    __m128 most = _mm_set1_ps((float)(hi - zp));
    for (; i + 8 <= n; i += 8) {
        __m128 a = _mm_div_ps(_mm_loadu_ps(x + i), s), b = _mm_div_ps(_mm_loadu_ps(x + i + 4), s);
        __m128i na = _mm_castps_si128(_mm_cmpunord_ps(a, a));
        __m128i nb = _mm_castps_si128(_mm_cmpunord_ps(b, b));
        __m128i p = _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(a, least), most));
        __m128i q = _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(b, least), most));
        p = _mm_or_si128(_mm_and_si128(na, _mm_set1_epi32($YMIN)),
                         _mm_andnot_si128(na, _mm_add_epi32(p, _mm_set1_epi32(zp))));
        q = _mm_or_si128(_mm_and_si128(nb, _mm_set1_epi32($YMIN)),
                         _mm_andnot_si128(nb, _mm_add_epi32(q, _mm_set1_epi32(zp))));
        p = _mm_packs_epi32(p, q);
        //! if Y=s8
        _mm_storel_epi64((__m128i *)(void *)(y + i), _mm_packs_epi16(p, p));
        //! else
        _mm_storel_epi64((__m128i *)(void *)(y + i), _mm_packus_epi16(p, p));
        //! end
    }
#endif
    //! end
    for (; i < n; i++) { /* in a form that compilers vectorise */
        float v = x[i] / scale;
        int32_t q = qk_round_small(v) + zp;
        q = q < lo ? lo : q > hi ? hi : q;
        y[i] = ($Y)(v == v ? q : $YMIN);
    }
}
