//! kernel sign_f32
//! also f64
// y = -1, 0 or 1 (ONNX Sign); a NaN stays one. y may be x.
typedef struct {
    int64_t n;
} qk_sign_f32_params;

static void $NAME(const qk_sign_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = x[i] > 0.0f ? 1.0f : x[i] < 0.0f ? -1.0f : x[i];
}
