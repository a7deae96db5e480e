//! kernel gru_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_fixed recur_gate_$x recur_state
// One direction of ONNX GRU on integers: w[3 * hidden, size] and r[3 * hidden, hidden] as in gru_f32, all
// else as in lstm_q. bias has hidden more numbers behind those of each direction: with linear_before_reset
// what is added to h . r alone, 2^24 times. That sum saturates at 2^8. f is Sigmoid. narrow holds
// 2 * hidden numbers.
typedef struct {
    int32_t steps, batch, size, hidden, reverse;
    int32_t direction;      /* which part of w, r, their scales and bias */
    int32_t x_shift, h_shift, h_bits;
    int32_t given_h;
    int32_t g;              /* which function: see qk_recur_curve */
    int32_t linear_before_reset;
    int32_t shift, yz, lo, hi;
    int64_t m;
    int64_t x_t, x_b;       /* step t, row b: x[t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b; /* the same in y */
    int64_t h_at, h_b;      /* row b in h */
    int64_t clip;           /* 2^24 times */
} qk_gru_q_params;

static void $NAME(const qk_gru_q_params *p, const $X *x, const int8_t *w, const int8_t *r,
                  const int32_t *x_scale, const int32_t *h_scale, const int64_t *bias,
                  const int32_t *lens, int32_t *hs, int16_t *narrow, $Y *y) {
    int32_t n = p->hidden, s, b, j, at = p->direction * 3 * n;
    int16_t *reset = narrow + n;
    w += (ptrdiff_t)at * p->size;
    r += (ptrdiff_t)at * n;
    x_scale += at;
    h_scale += at;
    bias += (ptrdiff_t)p->direction * 4 * n;
    for (b = 0; b < p->batch; b++) {
        int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
        int32_t *h = hs + p->h_at + b * p->h_b;
        if (!p->given_h || len <= 0)
            qk_recur_zero(h, n);
        for (s = 0; s < p->steps; s++) {
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            const $X *row = x + t * p->x_t + b * p->x_b;
            $Y *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            if (s < len)
                qk_recur_narrow(h, n, narrow);
            for (j = 0; s < len && !p->linear_before_reset && j < n; j++) {
                int64_t v = qk_recur_gate_$x(row, narrow, w, r, x_scale, h_scale, bias, n + j,
                                             p->size, n, p->x_shift, p->h_shift);
                v = qk_recur_curve(0, qk_recur_clamp(v, p->clip)) * (int64_t)h[j];
                reset[j] = (int16_t)qk_recur_clamp(qk_shift_round(v, 45), 32767);
            }
            for (j = 0; s < len && j < n; j++) {
                int64_t z = qk_recur_gate_$x(row, narrow, w, r, x_scale, h_scale, bias, j, p->size, n,
                                             p->x_shift, p->h_shift);
                int64_t v, k;
                z = qk_recur_curve(0, qk_recur_clamp(z, p->clip));
                if (p->linear_before_reset) {
                    k = qk_recur_gate_$x(row, narrow, w, r, x_scale, h_scale, bias, n + j, p->size, n,
                                         p->x_shift, p->h_shift);
                    k = qk_recur_curve(0, qk_recur_clamp(k, p->clip));
                    v = qk_recur_sum_s16(narrow, r + (ptrdiff_t)(2 * n + j) * n, n);
                    v = qk_shift_round(v * h_scale[2 * n + j], p->h_shift) + bias[3 * n + j];
                    v = qk_shift_round(k * qk_recur_clamp(v, 4294967295), 30);
                    k = qk_recur_sum_$x(row, w + (ptrdiff_t)(2 * n + j) * p->size, p->size);
                    v += qk_shift_round(k * x_scale[2 * n + j], p->x_shift) + bias[2 * n + j];
                } else {
                    v = qk_recur_gate_$x(row, reset, w, r, x_scale, h_scale, bias, 2 * n + j, p->size,
                                         n, p->x_shift, p->h_shift);
                }
                v = qk_recur_curve(p->g, qk_recur_clamp(v, p->clip));
                v = qk_shift_round((1073741824 - z) * v, p->h_bits) + z * h[j];
                h[j] = (int32_t)qk_recur_clamp(qk_shift_round(v, 30), 2147483647);
            }
            for (j = 0; out && j < n; j++) {
                int32_t q = s < len ? qk_round_fixed(h[j] * p->m, p->shift) : 0;
                out[j] = ($Y)qk_saturate(q + p->yz, p->lo, p->hi);
            }
        }
    }
}
