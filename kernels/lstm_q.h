//! kernel lstm_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_fixed recur_gate_$x recur_state
// One direction of ONNX LSTM on integers: w[4 * hidden, size] and r[4 * hidden, hidden] as in lstm, x as it
// comes; x_scale, h_scale and bias as qk_recur_gate has them. A state lives on in h, 2^(30 - h_bits) times
// itself, and c, 2^20 times, which saturates at 2^11; with `given` they hold the initial ones. peep, which
// may be absent, is 2^20 times itself. y, which may be absent too, is quantized by m, shift, yz, lo and hi
// (from_fixed). Rows of the batch end after lens[b] steps; behind that y is real 0. narrow holds hidden
// numbers.
typedef struct {
    int32_t steps, batch, size, hidden, reverse;
    int32_t direction;      /* which part of w, r, their scales, bias and peep */
    int32_t x_shift, h_shift, h_bits;
    int32_t given_h, given_c;
    int32_t f, g, h;        /* which functions: see qk_recur_curve */
    int32_t input_forget;
    int32_t shift, yz, lo, hi;
    int64_t m;
    int64_t x_t, x_b;       /* step t, row b: x[t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b; /* the same in y */
    int64_t h_at, h_b;      /* row b in h, c */
    int64_t clip;           /* 2^24 times */
} qk_lstm_q_params;

static void $NAME(const qk_lstm_q_params *p, const $X *x, const int8_t *w, const int8_t *r,
                  const int32_t *x_scale, const int32_t *h_scale, const int64_t *bias,
                  const int32_t *peep, const int32_t *lens, int32_t *hs, int32_t *cs,
                  int16_t *narrow, $Y *y) {
    int32_t n = p->hidden, s, b, j, k, at = p->direction * 4 * n;
    w += (ptrdiff_t)at * p->size;
    r += (ptrdiff_t)at * n;
    x_scale += at;
    h_scale += at;
    bias += at;
    peep = peep ? peep + (ptrdiff_t)p->direction * 3 * n : peep;
    for (b = 0; b < p->batch; b++) {
        int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
        int32_t *h = hs + p->h_at + b * p->h_b, *c = cs + p->h_at + b * p->h_b;
        if (!p->given_h || len <= 0)
            qk_recur_zero(h, n);
        if (!p->given_c || len <= 0)
            qk_recur_zero(c, n);
        for (s = 0; s < p->steps; s++) {
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            const $X *row = x + t * p->x_t + b * p->x_b;
            $Y *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            if (s < len)
                qk_recur_narrow(h, n, narrow);
            for (j = 0; s < len && j < n; j++) {
                int64_t z[4], i, f, g, o;
                for (k = 0; k < 4; k++)
                    z[k] = qk_recur_gate_$x(row, narrow, w, r, x_scale, h_scale, bias, k * n + j,
                                            p->size, n, p->x_shift, p->h_shift);
                if (peep) {
                    z[0] += qk_shift_round((int64_t)peep[j] * c[j], 16);
                    z[2] += qk_shift_round((int64_t)peep[2 * n + j] * c[j], 16);
                }
                i = qk_recur_curve(p->f, qk_recur_clamp(z[0], p->clip));
                f = p->input_forget ? 1073741824 - i
                                    : qk_recur_curve(p->f, qk_recur_clamp(z[2], p->clip));
                g = qk_recur_curve(p->g, qk_recur_clamp(z[3], p->clip));
                c[j] = (int32_t)qk_recur_clamp(
                    qk_shift_round(f * c[j] + qk_shift_round(i * g, 10), 30), 2147483647);
                if (peep)
                    z[1] += qk_shift_round((int64_t)peep[n + j] * c[j], 16);
                o = qk_recur_curve(p->f, qk_recur_clamp(z[1], p->clip));
                h[j] = (int32_t)qk_shift_round(o * qk_recur_curve(p->h, (int64_t)c[j] * 16),
                                               30 + p->h_bits);
            }
            for (j = 0; out && j < n; j++) {
                int32_t q = s < len ? qk_round_fixed(h[j] * p->m, p->shift) : 0;
                out[j] = ($Y)qk_saturate(q + p->yz, p->lo, p->hi);
            }
        }
    }
}
