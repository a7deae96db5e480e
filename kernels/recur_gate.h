//! chunk recur_gate
//! template X=s8,u8,s16,u16
//! uses shift_round recur_clamp recur_curve recur_sum_s16 recur_sum_$x
/* 2^24 times one of the x . W + h . R + bias of a step, h in 16 bits: row `row` of w[rows, size] and
 * r[rows, hidden]. The multipliers turn the sums into real numbers, 2^24 times 2^x_shift and 2^h_shift
 * larger; bias is 2^24 times larger and has taken in the zero point of x. */
static int64_t qk_recur_gate_$x(const $X *x, const int16_t *h, const int8_t *w, const int8_t *r,
                                const int32_t *x_scale, const int32_t *h_scale, const int64_t *bias,
                                int32_t row, int32_t size, int32_t hidden, int32_t x_shift,
                                int32_t h_shift) {
    int64_t sx = qk_recur_sum_$x(x, w + (ptrdiff_t)row * size, size);
    int64_t sh = qk_recur_sum_s16(h, r + (ptrdiff_t)row * hidden, hidden);
    return qk_shift_round(sx * x_scale[row], x_shift) + qk_shift_round(sh * h_scale[row], h_shift) +
           bias[row];
}
