//! chunk recur_state
//! uses shift_round recur_clamp
/* to[i] = h[i] / 2^15, the state as products take it. */
static void qk_recur_narrow(const int32_t *h, int32_t n, int16_t *to) {
    int32_t i;
    for (i = 0; i < n; i++)
        to[i] = (int16_t)qk_recur_clamp(qk_shift_round(h[i], 15), 32767);
}
static void qk_recur_zero(int32_t *state, int32_t n) {
    int32_t i;
    for (i = 0; i < n; i++)
        state[i] = 0;
}
