//! kernel hardsigmoid_f32
//! also f64
// y = max(0, min(1, alpha * x + beta)) (ONNX HardSigmoid). y may be x.
typedef struct {
    int64_t n;
    float alpha, beta;
} qk_hardsigmoid_f32_params;

static void $NAME(const qk_hardsigmoid_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    float alpha = p->alpha, beta = p->beta;
    for (i = 0; i < n; i++) {
        float v = alpha * x[i] + beta;
        y[i] = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
    }
}
