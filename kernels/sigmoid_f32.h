//! kernel sigmoid_f32
//! also f64
//! math
// y = 1 / (1 + exp(-x)) (ONNX Sigmoid), without overflow on either side. y may be x.
typedef struct {
    int64_t n;
} qk_sigmoid_f32_params;

static void $NAME(const qk_sigmoid_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float e = expf(x[i] < 0.0f ? x[i] : -x[i]);
        y[i] = (x[i] < 0.0f ? e : 1.0f) / (1.0f + e);
    }
}
