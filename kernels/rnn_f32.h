//! kernel rnn_f32
//! uses gate recur_f32
//! math
// One direction of ONNX RNN: h' = f(xw + h . r + bias). gate holds x . W of every step, r the weights
// [hidden, hidden] of the state. Rows of the batch end after lens[b] steps; behind that y is 0. Arguments
// may be absent: bias (Wb, Rb), h0, lens, y, yh. h' of a step lies where its gate was.
typedef struct {
    int32_t steps, batch, hidden, reverse;
    int32_t direction;      /* which part of r and bias */
    int64_t x_at, x_t, x_b; /* step t, row b: gate[x_at + t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b; /* the same in y */
    int64_t h_at, h_b;      /* row b in h0, yh */
    int32_t has_clip;
    float clip;
    int32_t f; /* which function: see qk_gate */
} qk_rnn_f32_params;

static void $NAME(const qk_rnn_f32_params *p, const float *r, const float *bias, const float *h0,
                  const int32_t *lens, float *y, float *yh, float *gate) {
    int32_t n = p->hidden, s, b, j;
    r += (ptrdiff_t)p->direction * n * n;
    bias = bias ? bias + (ptrdiff_t)p->direction * 2 * n : bias;
    for (b = 0; b < p->batch; b++) {
        int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
        const float *h = h0 && len > 0 ? h0 + p->h_at + b * p->h_b : NULL;
        for (s = 0; s < p->steps; s++) {
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            float *row = gate + p->x_at + t * p->x_t + b * p->x_b;
            float *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            if (s < len && h)
                qk_recur_f32(h, r, n, n, row);
            for (j = 0; s < len && j < n; j++) {
                float v = bias ? row[j] + (bias[j] + bias[n + j]) : row[j];
                row[j] = qk_gate(p->f, qk_gate_clip(p->has_clip, p->clip, v));
            }
            h = s < len ? row : h;
            for (j = 0; out && j < n; j++)
                out[j] = s < len ? h[j] : 0.0f;
        }
        for (j = 0; yh && j < n; j++)
            yh[p->h_at + b * p->h_b + j] = h ? h[j] : 0.0f;
    }
}
