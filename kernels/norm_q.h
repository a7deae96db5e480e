//! kernel norm_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_fixed shift_round root
// y = saturate(round_half_even((d - mean(d)) / sqrt(var(d) + eps) * gain[k] + offset[k]) + yz) of the
// integers d = x - xz of each row of x[rows, n], whose mean counts as 0 without `centre`; k = r % period
// * step + i / block (ONNX LayerNormalization and its like). With e = n * d - sum(d) and v = sum(e^2) / n,
// integers, (d - mean) / sqrt(var + eps) is e / sqrt(v + n^2 * eps). `eps` is n^2 * eps * 2^up, `up` even,
// and v * 2^up + eps < 2^62; |e| < 2^32. gain and offset count steps of the result, in 2^-(shift - 24) and
// 2^-shift. y may be x.
typedef struct {
    int32_t rows, n, period, step, block, centre, xz, yz, lo, hi, up, shift;
    int64_t eps;
} qk_norm_q_params;

/* 1 / sqrt(v + n^2 * eps) as a number of 31 bits times 2^(*half - 61); 0 where v is. */
static int64_t $NAME_inverse(const qk_norm_q_params *p, uint64_t v, int32_t *half) {
    int32_t up = p->up;
    uint64_t all = (up >= 0 ? v << up : v >> -up) + (uint64_t)p->eps;
    if (v == 0 || all == 0)
        return 0;
    for (; all < (uint64_t)1 << 60; all <<= 2)
        up += 2;
    *half = up / 2;
    return (int64_t)(((uint64_t)1 << 61) / qk_root(all));
}

/* The same of a row, with the sum of what is to have the mean 0. */
static int64_t $NAME_row(const qk_norm_q_params *p, const $X *x, int64_t *sum, int32_t *half) {
    uint64_t squares = 0, s;
    int32_t i;
    *sum = 0;
    for (i = 0; i < p->n; i++) {
        int64_t d = (int32_t)x[i] - p->xz;
        *sum += d;
        squares += (uint64_t)(d * d);
    }
    if (!p->centre)
        *sum = 0;
    s = (uint64_t)(*sum < 0 ? -*sum : *sum);
    return $NAME_inverse(p, (uint64_t)p->n * squares - s * s, half);
}

static void $NAME(const qk_norm_q_params *p, const $X *x, const int32_t *gain, const int64_t *offset,
                  $Y *y) {
    int32_t r, i;
    for (r = 0; r < p->rows; r++, x += p->n, y += p->n) {
        int32_t k = r % p->period * p->step, left = p->block, half = 0;
        int64_t sum, inverse = $NAME_row(p, x, &sum, &half);
        for (i = 0; i < p->n; i++) {
            int64_t e = (int64_t)p->n * ((int32_t)x[i] - p->xz) - sum;
            int64_t v = qk_shift_round(e * inverse, 37 - half) * gain[k] + offset[k];
            y[i] = ($Y)qk_saturate(qk_round_fixed(v, p->shift) + p->yz, p->lo, p->hi);
            if (--left == 0) {
                left = p->block;
                k++;
            }
        }
    }
}
