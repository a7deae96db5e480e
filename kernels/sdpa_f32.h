//! kernel sdpa_f32
//! math
//! uses dot8_f32
// ONNX Attention: y = softmax(cap(scale * q . k) + mask) . v for each batch, head and step of q, heads of
// k and v shared by `heads / kv_heads` of q each. A step i attends the key j where the mask (bool or
// numbers to add; shorter than the keys: those behind are hidden) says so, j is below lens[batch], and
// within p - left..p + right of p = i + offset, unbounded where -1; offset is lens - sq where there are
// lens. With softcap, cap(s) = softcap * tanh(s / softcap). A step that attends none has a row of zeros.
// `seen` gets the scores as `mode` says: 0 products, 1 capped, 2 with mask, 3 probabilities. Numbers of a
// step stand next to each other; strides are those of batches, heads and steps. scores holds `keys`.
typedef struct {
    int32_t batch, heads, kv_heads, sq, keys, size, v_size;
    int32_t qb, qh, qs, kb, kh, ks, vb, vh, vs, yb, yh, ys;
    int32_t mb, mh, ms, mk, masked;
    int32_t offset, left, right, mode;
    float scale, softcap;
} qk_sdpa_f32_params;

static int32_t $NAME_attends(const qk_sdpa_f32_params *p, const uint8_t *allowed, ptrdiff_t at,
                             int64_t i, int64_t j, int64_t len) {
    if ((allowed && (j >= p->masked || !allowed[at + j * p->mk])) || j >= len)
        return 0;
    return (p->left < 0 || j >= i - p->left) && (p->right < 0 || j <= i + p->right);
}

/* scores[0..keys) become probabilities, all 0 where every one of them is -inf. */
static void $NAME_soften(float *scores, int32_t keys, float none) {
    float max = none, sum = 0.0f;
    int32_t j;
    for (j = 0; j < keys; j++)
        max = scores[j] > max || scores[j] != scores[j] ? scores[j] : max;
    for (j = 0; j < keys; j++) {
        scores[j] = max == none || scores[j] == none ? 0.0f : expf(scores[j] - max);
        sum += scores[j];
    }
    for (j = 0; j < keys && sum != 0.0f; j++)
        scores[j] /= sum;
}

static void $NAME(const qk_sdpa_f32_params *p, const float *q, const float *k, const float *v,
                  const uint8_t *allowed, const float *mask, const int64_t *lens, float *y,
                  float *seen, float *scores) {
    float zero = 0.0f, none = -1.0f / zero;
    int32_t b, h, i, j, d;
    for (b = 0; b < p->batch; b++)
        for (h = 0; h < p->heads; h++)
            for (i = 0; i < p->sq; i++) {
                int32_t kv = h / (p->heads / p->kv_heads);
                int64_t len = lens ? lens[b] : p->keys, step = i + (lens ? len - p->sq : p->offset);
                ptrdiff_t at = (ptrdiff_t)b * p->mb + (ptrdiff_t)h * p->mh + (ptrdiff_t)i * p->ms;
                const float *qi = q + (ptrdiff_t)b * p->qb + (ptrdiff_t)h * p->qh + (ptrdiff_t)i * p->qs;
                const float *kj = k + (ptrdiff_t)b * p->kb + (ptrdiff_t)kv * p->kh;
                const float *vj = v + (ptrdiff_t)b * p->vb + (ptrdiff_t)kv * p->vh;
                float *yi = y + (ptrdiff_t)b * p->yb + (ptrdiff_t)h * p->yh + (ptrdiff_t)i * p->ys;
                for (j = 0; j < p->keys; j++) {
                    float s = p->scale * qk_dot8_f32(qi, kj + (ptrdiff_t)j * p->ks, p->size);
                    if (seen && p->mode == 0)
                        seen[j] = s;
                    s = p->softcap != 0.0f ? p->softcap * tanhf(s / p->softcap) : s;
                    if (seen && p->mode == 1)
                        seen[j] = s;
                    if (mask)
                        s += j < p->masked ? mask[at + (ptrdiff_t)j * p->mk] : none;
                    scores[j] = $NAME_attends(p, allowed, at, step, j, len) ? s : none;
                    if (seen && p->mode == 2)
                        seen[j] = scores[j];
                }
                $NAME_soften(scores, p->keys, none);
                for (j = 0; j < p->keys && seen && p->mode == 3; j++)
                    seen[j] = scores[j];
                for (d = 0; d < p->v_size; d++)
                    yi[d] = 0.0f;
                for (j = 0; j < p->keys; j++)
                    for (d = 0; d < p->v_size && scores[j] != 0.0f; d++)
                        yi[d] += scores[j] * vj[(ptrdiff_t)j * p->vs + d];
                seen = seen ? seen + p->keys : seen;
            }
}
