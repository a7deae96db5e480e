//! kernel normalize_f32
//! also f64
// y = (x - mean[r]) * spread[r] * scale[k] + bias[k] on x[rows, n], mean and bias 0 where they are not
// there; k = r % period * step + i / block (ONNX LayerNormalization and its like). y may be x.
typedef struct {
    int32_t rows, n, period, step, block, has_mean, has_bias;
} qk_normalize_f32_params;

static void $NAME(const qk_normalize_f32_params *p, const float *x, const float *mean,
                  const float *spread, const float *scale, const float *bias, float *y) {
    int32_t r, i;
    for (r = 0; r < p->rows; r++, x += p->n, y += p->n) {
        float m = p->has_mean ? mean[r] : 0.0f, s = spread[r];
        int32_t k = r % p->period * p->step, left = p->block;
        for (i = 0; i < p->n; i++) {
            float v = (x[i] - m) * s * scale[k];
            y[i] = p->has_bias ? v + bias[k] : v;
            if (--left == 0) {
                left = p->block;
                k++;
            }
        }
    }
}
