//! kernel round_sum_q
//! template T=s8,u8,s16,u16
//! uses saturate round_fixed
// y = saturate(round_half_even(sum / 2^shift) + yz). Works front to back: y may lie over sum.
typedef struct {
    int32_t n, yz, lo, hi, shift;
} qk_round_sum_q_params;

static void $NAME(const qk_round_sum_q_params *p, const int64_t *sum, $T *y) {
    int32_t i;
    for (i = 0; i < p->n; i++)
        y[i] = ($T)qk_saturate(qk_round_fixed(sum[i], p->shift) + p->yz, p->lo, p->hi);
}
