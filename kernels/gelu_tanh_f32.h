//! kernel gelu_tanh_f32
//! also f64
//! math
// y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (ONNX Gelu, approximate = "tanh"). y may be x.
typedef struct {
    int64_t n;
} qk_gelu_tanh_f32_params;

static void $NAME(const qk_gelu_tanh_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float inner = 0.7978845608028654f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        y[i] = 0.5f * x[i] * (1.0f + tanhf(inner));
    }
}
