//! chunk requant_each
//! template Y=s8,u8,s16,u16 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses saturate requant_sum if R=exact
//! uses saturate requant$r if R!=exact
/* y[i * step + j] = saturate(round((acc[i * 32 + j] + bias[j]) * mul[j] * 2^shift[j]) + yz) with the
 * rounding of qk_requant$r, for i < rows and j < n <= 32. */
static void qk_requant_each_$y$r(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j++) {
            int32_t s = (int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]);
            //! if R=exact
            y[j] = ($Y)qk_saturate(qk_requant_sum(s, mul[j], shift[j]) + yz, lo, hi);
            //! else
            y[j] = ($Y)qk_saturate(qk_requant$r(s, mul[j], shift[j]) + yz, lo, hi);
            //! end
        }
}
