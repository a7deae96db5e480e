//! kernel logsoftmax_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! expand E = X
//! uses saturate round_fixed exp_$e log2_fixed
// y = saturate(round_half_even(((x - max) * sx - ln(sum exp((x - max) * sx))) / sy) + yz) along the middle
// one of [outer, n, inner], in integers: the sum as in softmax_q; step = sx / sy * 2^shift and log2 = ln(2)
// / sy * 2^(shift - 28) (bind of LogSoftmax prepares them). y may be x.
typedef struct {
    int32_t outer, n, inner, yz, lo, hi, shift;
    int64_t step, log2;
} qk_logsoftmax_q_params;

static void $NAME(const qk_logsoftmax_q_params *p, const $X *x, const uint32_t *table, $Y *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner && p->n > 0; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            $X max = x[at];
            uint64_t sum = 0;
            int64_t log;
            for (k = 1; k < p->n; k++)
                if (x[at + k * step] > max)
                    max = x[at + k * step];
            for (k = 0; k < p->n; k++)
                sum += qk_exp_$e(table, max - x[at + k * step]);
            log = qk_log2_fixed(sum) * p->log2;
            for (k = 0; k < p->n; k++) {
                int64_t v = (int64_t)(x[at + k * step] - max) * p->step - log;
                y[at + k * step] = ($Y)qk_saturate(qk_round_fixed(v, p->shift) + p->yz, p->lo, p->hi);
            }
        }
}
