//! kernel gru_f32
//! uses gate recur_f32
//! math
// One direction of ONNX GRU. xw holds x . W of every step, r the weights [3 * hidden, hidden] of the
// state, in the order update, reset, hidden:
//   z, r = f(xw + h . r + bias), n = g(xw + (r h) . r + bias), h' = (1 - z) n + z h
// or n = g(xw + Wb + r (h . r + Rb)) with linear_before_reset. Rows of the batch end after lens[b] steps;
// behind that y is 0. Arguments may be absent: bias (Wb, Rb), h0, lens, y, yh. state holds
// 7 * hidden numbers.
typedef struct {
    int32_t steps, batch, hidden, reverse;
    int32_t direction;      /* which part of r and bias */
    int64_t x_at, x_t, x_b; /* gates of step t, row b: xw[x_at + t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b; /* the same in y */
    int64_t h_at, h_b;      /* row b in h0, yh */
    int32_t has_clip;
    float clip;
    int32_t f, g; /* which functions: see qk_gate */
    int32_t linear_before_reset;
} qk_gru_f32_params;

/* One step of one row; gates and sum hold 3 * hidden numbers each, gates those of x. */
static void $NAME_cell(const qk_gru_f32_params *p, const float *r, const float *bias, float *gates,
                       float *sum, float *h) {
    int32_t j, n = p->hidden, before = p->linear_before_reset;
    float *reset = sum + n, *last = sum + 2 * (ptrdiff_t)n;
    for (j = 0; j < 3 * n; j++)
        sum[j] = 0.0f;
    qk_recur_f32(h, r, (before ? 3 : 2) * n, n, sum);
    for (j = 0; j < 2 * n; j++) { /* update in sum[0..n), reset behind it */
        float b = bias ? bias[j] + bias[3 * n + j] : 0.0f;
        sum[j] = qk_gate(p->f, qk_gate_clip(p->has_clip, p->clip, gates[j] + sum[j] + b));
    }
    if (!before) {
        for (j = 0; j < n; j++)
            gates[j] = reset[j] * h[j]; /* that of update is done with */
        qk_recur_f32(gates, r + (ptrdiff_t)2 * n * n, n, n, last);
    }
    for (j = 0; j < n; j++) {
        float wb = bias ? bias[2 * n + j] : 0.0f, rb = bias ? bias[5 * n + j] : 0.0f, v;
        v = before ? gates[2 * n + j] + wb + reset[j] * (last[j] + rb)
                   : gates[2 * n + j] + last[j] + (wb + rb);
        v = qk_gate(p->g, qk_gate_clip(p->has_clip, p->clip, v));
        h[j] = (1.0f - sum[j]) * v + sum[j] * h[j];
    }
}

static void $NAME(const qk_gru_f32_params *p, const float *xw, const float *r, const float *bias,
                  const float *h0, const int32_t *lens, float *y, float *yh, float *state) {
    int32_t n = p->hidden, s, b, j;
    float *gates = state + n, *sum = gates + 3 * (ptrdiff_t)n;
    r += (ptrdiff_t)p->direction * 3 * n * n;
    bias = bias ? bias + (ptrdiff_t)p->direction * 6 * n : bias;
    for (b = 0; b < p->batch; b++) {
        int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
        float *h = state;
        for (j = 0; j < n; j++)
            h[j] = h0 && len > 0 ? h0[p->h_at + b * p->h_b + j] : 0.0f;
        for (s = 0; s < p->steps; s++) {
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            float *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            if (s < len) {
                for (j = 0; j < 3 * n; j++)
                    gates[j] = xw[p->x_at + t * p->x_t + b * p->x_b + j];
                $NAME_cell(p, r, bias, gates, sum, h);
            }
            for (j = 0; out && j < n; j++)
                out[j] = s < len ? h[j] : 0.0f;
        }
        for (j = 0; yh && j < n; j++)
            yh[p->h_at + b * p->h_b + j] = h[j];
    }
}
