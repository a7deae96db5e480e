//! kernel lstm
//! template R=f32,s8,u8
//! uses gate
//! uses recur_f32 if R=f32
//! uses round_small dynscale recur_round recur_q_$r if R!=f32
//! math
// One direction of ONNX LSTM. gates holds x . W of every step, r the weights [4 * hidden, hidden] of the
// state, in the order input, output, forget, cell:
//   i, f = f(xw + h . r + peep * c + bias), g = g(..), c' = f c + i g, o = f(.. + peep * c'), h' = o h(c')
// Rows of the batch end after lens[b] steps; behind that y is 0. Arguments may be absent: bias (Wb, Rb),
// peep (input, output, forget), h0, c0, lens, y, yh, yc. With integers r, of scale and zero point by row,
// h is rounded to 0..255 before each step, with parameters from its smallest and largest number
// (com.microsoft DynamicQuantizeLSTM); hs and hq hold batch * hidden numbers for that. What a step leaves,
// h' and c', lies where its first two gates were.
typedef struct {
    int32_t steps, batch, hidden, reverse;
    int32_t direction;          /* which part of r, scale, zp, bias and peep */
    int64_t x_at, x_t, x_b;     /* step t, row b: gates[x_at + t * x_t + b * x_b] */
    int64_t y_at, y_t, y_b;     /* the same in y */
    int64_t h_at, h_b;          /* row b in h0, c0, yh, yc */
    int32_t has_clip;
    float clip;
    int32_t f, g, h;            /* which functions: see qk_gate */
    int32_t input_forget;
} qk_lstm_params;

/* `row` holds the gates, then h' and c'. */
static void $NAME_cell(const qk_lstm_params *p, float *row, const float *bias, const float *peep,
                       const float *c) {
    int32_t j, n = p->hidden;
    for (j = 0; j < n; j++) {
        float wi = peep ? peep[j] : 0.0f, wo = peep ? peep[n + j] : 0.0f;
        float wf = peep ? peep[2 * n + j] : 0.0f, bi = 0.0f, bo = 0.0f, bf = 0.0f, bc = 0.0f;
        float was = c ? c[j] : 0.0f, i, o, f, g, cell;
        if (bias) {
            bi = bias[j] + bias[4 * n + j];
            bo = bias[n + j] + bias[5 * n + j];
            bf = bias[2 * n + j] + bias[6 * n + j];
            bc = bias[3 * n + j] + bias[7 * n + j];
        }
        i = qk_gate_clip(p->has_clip, p->clip, row[j] + wi * was + bi);
        i = qk_gate(p->f, i);
        f = qk_gate_clip(p->has_clip, p->clip, row[2 * n + j] + wf * was + bf);
        f = p->input_forget ? 1.0f - i : qk_gate(p->f, f);
        g = qk_gate_clip(p->has_clip, p->clip, row[3 * n + j] + bc);
        cell = f * was + i * qk_gate(p->g, g);
        o = qk_gate_clip(p->has_clip, p->clip, row[n + j] + wo * cell + bo);
        row[j] = qk_gate(p->f, o) * qk_gate(p->h, cell);
        row[n + j] = cell;
    }
}

static void $NAME(const qk_lstm_params *p, const $R *r,
//! if R!=f32
                  const float *scale, const int32_t *zp,
//! end
                  const float *bias, const float *peep, const float *h0, const float *c0,
                  const int32_t *lens, float *y, float *yh, float *yc,
//! if R=f32
                  float *gates) {
//! else
                  float *gates, float *hs, int16_t *hq) {
//! end
    int32_t n = p->hidden, s, b, j;
    r += (ptrdiff_t)p->direction * 4 * n * n;
//! if R!=f32
    scale += (ptrdiff_t)p->direction * 4 * n;
    zp += (ptrdiff_t)p->direction * 4 * n;
//! end
    bias = bias ? bias + (ptrdiff_t)p->direction * 8 * n : bias;
    peep = peep ? peep + (ptrdiff_t)p->direction * 3 * n : peep;
    for (b = 0; b < p->batch; b++)
        for (j = 0; j < n; j++) {
//! if R!=f32
            hs[(ptrdiff_t)b * n + j] = h0 ? h0[p->h_at + b * p->h_b + j] : 0.0f;
//! end
            if (yh)
                yh[p->h_at + b * p->h_b + j] = 0.0f;
            if (yc)
                yc[p->h_at + b * p->h_b + j] = 0.0f;
        }
    for (s = 0; s < p->steps; s++) {
//! if R!=f32
        float hscale;
        int32_t hzp;
        qk_dynscale(hs, (int64_t)p->batch * n, &hscale, &hzp);
        qk_recur_round(hs, (int64_t)p->batch * n, hscale, hzp, hq);
//! end
        for (b = 0; b < p->batch; b++) {
            int32_t len = lens && lens[b] < p->steps ? lens[b] : p->steps;
            int32_t t = p->reverse && s < len ? len - 1 - s : s;
            float *row = gates + p->x_at + t * p->x_t + b * p->x_b;
            float *out = y ? y + p->y_at + t * p->y_t + b * p->y_b : NULL;
            const float *c = c0 ? c0 + p->h_at + b * p->h_b : NULL;
//! if R=f32
            const float *h = h0 ? h0 + p->h_at + b * p->h_b : NULL;
//! end
            if (s >= len) {
                for (j = 0; j < n; j++) {
//! if R!=f32
                    hs[(ptrdiff_t)b * n + j] = 0.0f;
//! end
                    if (out)
                        out[j] = 0.0f;
                }
                continue;
            }
            if (s > 0)
                c = (p->reverse ? row + p->x_t : row - p->x_t) + n;
//! if R=f32
            if (s > 0)
                h = c - n;
            if (h)
                qk_recur_f32(h, r, 4 * n, n, row);
//! else
            qk_recur_q_$r(hq + (ptrdiff_t)b * n, r, scale, zp, hscale, 4 * n, n, row);
//! end
            $NAME_cell(p, row, bias, peep, c);
            for (j = 0; j < n; j++) {
//! if R!=f32
                hs[(ptrdiff_t)b * n + j] = row[j];
//! end
                if (out)
                    out[j] = row[j];
                if (yh && s == len - 1)
                    yh[p->h_at + b * p->h_b + j] = row[j];
                if (yc && s == len - 1)
                    yc[p->h_at + b * p->h_b + j] = row[n + j];
            }
        }
    }
}
