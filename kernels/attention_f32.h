//! kernel attention_f32
//! math
//! uses dot8_f32
// com.microsoft Attention behind its product: qkv[batch, steps, width] holds queries, keys and values of
// all heads side by side, of qk, qk and v numbers each.
//   y = softmax(scale * q . k + mask) . v
// Where the mask says so `filter` is added; with `causal`, a step does not see those behind it. The kind of
// mask: 0 none; 1 ends[batch]; 2 ends and starts [2 * batch]; 3 mask[batch, steps]; 4 mask[batch, steps,
// steps], where 0 and below hides a step. scores holds `steps` numbers.
typedef struct {
    int32_t batch, steps, heads, qk, v, causal, kind;
    float scale, filter;
} qk_attention_f32_params;

static int32_t $NAME_hides(const qk_attention_f32_params *p, const int32_t *mask, int32_t b,
                           int32_t i, int32_t j) {
    switch (p->kind) {
    case 1: return j >= mask[b];
    case 2: return j >= mask[b] || j < mask[p->batch + b];
    case 3: return mask[(ptrdiff_t)b * p->steps + j] <= 0;
    case 4: return mask[((ptrdiff_t)b * p->steps + i) * p->steps + j] <= 0;
    default: return 0;
    }
}

/* scores[0..seen) become probabilities; returns how many steps are seen. */
static int32_t $NAME_weights(const qk_attention_f32_params *p, const float *q, const float *k,
                             ptrdiff_t width, const int32_t *mask, int32_t b, int32_t i,
                             float *scores) {
    int32_t seen = p->causal ? i + 1 : p->steps, j;
    float max = 0.0f, sum = 0.0f;
    for (j = 0; j < seen; j++) {
        float s = p->scale * qk_dot8_f32(q, k + j * width, p->qk);
        scores[j] = $NAME_hides(p, mask, b, i, j) ? s + p->filter : s;
        max = j == 0 || scores[j] > max ? scores[j] : max;
    }
    for (j = 0; j < seen; j++) {
        scores[j] = expf(scores[j] - max);
        sum += scores[j];
    }
    for (j = 0; j < seen; j++)
        scores[j] /= sum;
    return seen;
}

static void $NAME(const qk_attention_f32_params *p, const float *qkv, const int32_t *mask, float *y,
                  float *scores) {
    int32_t b, h, i, j, k;
    ptrdiff_t width = (ptrdiff_t)p->heads * (2 * p->qk + p->v);
    for (b = 0; b < p->batch; b++, qkv += p->steps * width)
        for (h = 0; h < p->heads; h++) {
            const float *q = qkv + (ptrdiff_t)h * p->qk, *keys = q + (ptrdiff_t)p->heads * p->qk;
            const float *values = qkv + 2 * (ptrdiff_t)p->heads * p->qk + (ptrdiff_t)h * p->v;
            for (i = 0; i < p->steps; i++) {
                float *out = y + (((ptrdiff_t)b * p->steps + i) * p->heads + h) * p->v;
                int32_t seen =
                    $NAME_weights(p, q + i * width, keys, width, mask, b, i, scores);
                for (k = 0; k < p->v; k++)
                    out[k] = 0.0f;
                for (j = 0; j < seen; j++)
                    for (k = 0; k < p->v; k++)
                        out[k] += scores[j] * values[j * width + k];
            }
        }
}
