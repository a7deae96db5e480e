//! kernel elu_f32
//! also f64
//! math
// y = gamma * (x > 0 ? x : alpha * (exp(x / sharpness) - 1)): ONNX Elu (gamma and sharpness 1), Selu
// (sharpness 1), Celu (gamma 1, sharpness alpha). y may be x.
typedef struct {
    int64_t n;
    float alpha, gamma, sharpness;
} qk_elu_f32_params;

static void $NAME(const qk_elu_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float v = x[i] > 0.0f ? x[i] : p->alpha * expm1f(x[i] / p->sharpness);
        y[i] = p->gamma * v;
    }
}
