//! kernel rotary_f32
// ONNX RotaryEmbedding: the first 2 * half numbers of each step of x[batch, heads, steps, size] are pairs
// that are turned by the angle whose cosine and sine stand in a row of the tables: halves, or neighbours
// where `interleaved`. The row is ids[batch, step], of `rows` (the nearest where it lies outside), or
// that of the step itself without ids. Strides are those of batches, heads and steps.
typedef struct {
    int32_t batch, heads, steps, size, half, interleaved, rows;
    int32_t xb, xh, xs;
} qk_rotary_f32_params;

static void $NAME(const qk_rotary_f32_params *p, const float *x, const float *cosine,
                  const float *sine, const int64_t *ids, float *y) {
    int32_t b, h, s, i;
    for (b = 0; b < p->batch; b++)
        for (h = 0; h < p->heads; h++)
            for (s = 0; s < p->steps; s++) {
                ptrdiff_t at = (ptrdiff_t)b * p->xb + (ptrdiff_t)h * p->xh + (ptrdiff_t)s * p->xs;
                int64_t row = (int64_t)b * p->steps + s;
                row = ids ? ids[row] : row;
                row = row < 0 ? 0 : row >= p->rows ? p->rows - 1 : row;
                for (i = 0; i < p->half; i++) {
                    ptrdiff_t u = at + (p->interleaved ? 2 * i : i);
                    ptrdiff_t v = u + (p->interleaved ? 1 : p->half);
                    float c = cosine[row * p->half + i], t = sine[row * p->half + i], a = x[u];
                    y[u] = c * a - t * x[v];
                    y[v] = t * a + c * x[v];
                }
                for (i = 2 * p->half; i < p->size; i++)
                    y[at + i] = x[at + i];
            }
}
