//! kernel mish_f32
//! also f64
//! math
// y = x * tanh(log(1 + exp(x))) (ONNX Mish). y may be x.
typedef struct {
    int64_t n;
} qk_mish_f32_params;

static void $NAME(const qk_mish_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float soft = (x[i] > 0.0f ? x[i] : 0.0f) + log1pf(expf(-fabsf(x[i])));
        y[i] = x[i] * tanhf(soft);
    }
}
