//! kernel gru_f32
//! uses gate recur_f32
//! math
// One direction of ONNX GRU. gates holds x . W of every step, r the weights [3 * hidden, hidden] of the
// state, in the order update, reset, hidden:
//   z, r = f(xw + h . r + bias), n = g(xw + (r h) . r + bias), h' = (1 - z) n + z h
// or n = g(xw + Wb + r (h . r + Rb)) with linear_before_reset. Rows of the batch end after lens[b] steps;
// behind that y is 0. Arguments may be absent: bias (Wb, Rb), h0, lens, y, yh. h' of a step lies where its
// update was.
typedef struct {
    int32_t steps, batch, hidden, reverse;
    int32_t direction;      /* which part of r and bias */
    int64_t x_at, x_t, x_b; /* step t, row b: gates[x_at + t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b; /* the same in y */
    int64_t h_at, h_b;      /* row b in h0, yh */
    int32_t has_clip;
    float clip;
    int32_t f, g; /* which functions: see qk_gate */
    int32_t linear_before_reset;
} qk_gru_f32_params;

/* h . r of one row, 0 without h. */
static float $NAME_last(const float *h, const float *r, int32_t len) {
    float sum = 0.0f;
    if (h)
        qk_recur_f32(h, r, 1, len, &sum);
    return sum;
}

/* One step of one row: `row` holds the gates, then h' in the first of them. */
static void $NAME_cell(const qk_gru_f32_params *p, const float *r, const float *bias,
                       const float *h, float *row) {
    int32_t j, n = p->hidden, before = p->linear_before_reset;
    float *reset = row + n, *last = row + 2 * (ptrdiff_t)n;
    const float *lr = r + (ptrdiff_t)2 * n * n;
    if (h)
        qk_recur_f32(h, r, 2 * n, n, row);
    for (j = 0; j < 2 * n; j++) { /* update, reset */
        float b = bias ? bias[j] + bias[3 * n + j] : 0.0f;
        row[j] = qk_gate(p->f, qk_gate_clip(p->has_clip, p->clip, row[j] + b));
    }
    for (j = 0; !before && j < n; j++)
        reset[j] = h ? reset[j] * h[j] : 0.0f;
    if (!before && h)
        qk_recur_f32(reset, lr, n, n, last);
    for (j = 0; j < n; j++) {
        float wb = bias ? bias[2 * n + j] : 0.0f, rb = bias ? bias[5 * n + j] : 0.0f, v;
        v = before ? last[j] + wb +
                         reset[j] * ($NAME_last(h, lr + (ptrdiff_t)j * n, n) + rb)
                   : last[j] + (wb + rb);
        v = qk_gate(p->g, qk_gate_clip(p->has_clip, p->clip, v));
        row[j] = (1.0f - row[j]) * v + (h ? row[j] * h[j] : 0.0f);
    }
}

static void $NAME(const qk_gru_f32_params *p, const float *r, const float *bias, const float *h0,
                  const int32_t *lens, float *y, float *yh, float *gates) {
    int32_t n = p->hidden, s, b, j;
    r += (ptrdiff_t)p->direction * 3 * n * n;
    bias = bias ? bias + (ptrdiff_t)p->direction * 6 * n : bias;
    for (b = 0; b < p->batch; b++) {
        int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
        const float *h = h0 && len > 0 ? h0 + p->h_at + b * p->h_b : NULL;
        for (s = 0; s < p->steps; s++) {
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            float *row = gates + p->x_at + t * p->x_t + b * p->x_b;
            float *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            if (s < len) {
                $NAME_cell(p, r, bias, h, row);
                h = row;
            }
            for (j = 0; out && j < n; j++)
                out[j] = s < len ? h[j] : 0.0f;
        }
        for (j = 0; yh && j < n; j++)
            yh[p->h_at + b * p->h_b + j] = h ? h[j] : 0.0f;
    }
}
