//! kernel rnn_f32
//! uses gate recur_f32
//! math
// One direction of ONNX RNN: h' = f(xw + h . r + bias). xw holds x . W of every step, r the weights
// [hidden, hidden] of the state. Rows of the batch end after lens[b] steps; behind that y is 0. Arguments
// may be absent: bias (Wb, Rb), h0, lens, y, yh. state holds 2 * hidden numbers.
typedef struct {
    int32_t steps, batch, hidden, reverse;
    int32_t direction;      /* which part of r and bias */
    int64_t x_at, x_t, x_b; /* gate of step t, row b: xw[x_at + t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b; /* the same in y */
    int64_t h_at, h_b;      /* row b in h0, yh */
    int32_t has_clip;
    float clip;
    int32_t f; /* which function: see qk_gate */
} qk_rnn_f32_params;

static void $NAME(const qk_rnn_f32_params *p, const float *xw, const float *r, const float *bias,
                  const float *h0, const int32_t *lens, float *y, float *yh, float *state) {
    int32_t n = p->hidden, s, b, j;
    float *h = state, *gate = state + n;
    r += (ptrdiff_t)p->direction * n * n;
    bias = bias ? bias + (ptrdiff_t)p->direction * 2 * n : bias;
    for (b = 0; b < p->batch; b++) {
        int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
        for (j = 0; j < n; j++)
            h[j] = h0 && len > 0 ? h0[p->h_at + b * p->h_b + j] : 0.0f;
        for (s = 0; s < p->steps; s++) {
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            float *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            for (j = 0; s < len && j < n; j++)
                gate[j] = xw[p->x_at + t * p->x_t + b * p->x_b + j];
            if (s < len)
                qk_recur_f32(h, r, n, n, gate);
            for (j = 0; s < len && j < n; j++) {
                float v = bias ? gate[j] + (bias[j] + bias[n + j]) : gate[j];
                h[j] = qk_gate(p->f, qk_gate_clip(p->has_clip, p->clip, v));
            }
            for (j = 0; out && j < n; j++)
                out[j] = s < len ? h[j] : 0.0f;
        }
        for (j = 0; yh && j < n; j++)
            yh[p->h_at + b * p->h_b + j] = h[j];
    }
}
