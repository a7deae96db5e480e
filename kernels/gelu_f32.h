//! kernel gelu_f32
//! also f64
//! math
// y = x * Phi(x), Phi the normal distribution: (1 + erf(x / sqrt 2)) / 2 (ONNX Gelu). y may be x.
typedef struct {
    int64_t n;
} qk_gelu_f32_params;

static void $NAME(const qk_gelu_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.7071067811865476f));
}
