//! kernel softmax_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! expand E = X
//! uses saturate round_ratio exp_$e
// y = saturate(round_half_even(e / (sum e * sy)) + yz), e = exp((x - max) * sx), along the middle
// one of [outer, n, inner], in integers: table[d] is 2^31 exp(-d * sx) for d = max - x, and inv is
// 2^shift / sy (softmax_table and softmax_inverse prepare them).
typedef struct {
    int32_t outer, n, inner, yz, lo, hi, shift;
    int64_t inv;
} qk_softmax_q_params;

static void $NAME(const qk_softmax_q_params *p, const $X *x, const uint32_t *table, $Y *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner && p->n > 0; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            $X max = x[at];
            uint64_t sum = 0;
            for (k = 1; k < p->n; k++)
                if (x[at + k * step] > max)
                    max = x[at + k * step];
            for (k = 0; k < p->n; k++)
                sum += qk_exp_$e(table, max - x[at + k * step]);
            for (k = 0; k < p->n; k++) {
                int64_t e = (int64_t)qk_exp_$e(table, max - x[at + k * step]) * p->inv;
                int32_t q = qk_round_ratio(e, (int64_t)(sum << p->shift));
                y[at + k * step] = ($Y)qk_saturate(q + p->yz, p->lo, p->hi);
            }
        }
}
