//! chunk requant_row
//! template A=s32,s64 Y=s8,u8,s16,u16 R=exact,single,double,shift
//! skip R!=exact A=s64
//! skip R!=exact Y!=s8,u8
//! uses saturate requant$r
/* y[i * step] = saturate(round(acc[i] * c * 2^k) + yz) with the rounding of qk_requant$r. */
//! if A=s32 R=exact
/* The loop takes the common case, in a form that compilers vectorise: no tie near, |acc| <= 2^24.
 * Where it meets another, all is done again with care. */
//! end
static void qk_requant_row_$a_$y$r(const $A *acc, int32_t n, int32_t c, int32_t k, int32_t yz,
                                 int32_t lo, int32_t hi, $Y *y, ptrdiff_t step) {
    int32_t i;
    //! if A=s32 R=exact
    if (c >= 0 && k <= -1 && k >= -48) {
        uint64_t m = (uint64_t)(uint32_t)c, half = (uint64_t)1 << (-k - 1), hard = 0;
        int32_t t = -k;
        for (i = 0; i < n; i++) {
            uint32_t a = acc[i] < 0 ? 0u - (uint32_t)acc[i] : (uint32_t)acc[i];
            uint64_t p = a * m, q = (p + half) >> t, low = (p + half) & (2 * half - 1);
            uint64_t slack = p >> 24;
            int32_t v = (int32_t)(uint32_t)(q > 1073741823u ? 1073741823u : q);
            hard |= (uint64_t)(low <= slack) | (uint64_t)(2 * half - low <= slack) |
                    (uint64_t)(a > 16777216u);
            v = (acc[i] < 0 ? -v : v) + yz;
            y[i * step] = ($Y)qk_saturate(v, lo, hi);
        }
        if (!hard)
            return;
    }
    //! end
    for (i = 0; i < n; i++)
        y[i * step] = ($Y)qk_saturate(qk_requant$r(acc[i], c, k) + yz, lo, hi);
}
