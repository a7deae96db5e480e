//! kernel hardswish_f32
//! also f64
// y = x * max(0, min(1, x / 6 + 1/2)) (ONNX HardSwish). y may be x.
typedef struct {
    int64_t n;
} qk_hardswish_f32_params;

static void $NAME(const qk_hardswish_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float v = x[i] / 6.0f + 0.5f;
        y[i] = x[i] * (v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v);
    }
}
