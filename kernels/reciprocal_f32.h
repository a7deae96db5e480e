//! kernel reciprocal_f32
//! also f64
// y = 1 / x (ONNX Reciprocal). y may be x.
typedef struct {
    int64_t n;
} qk_reciprocal_f32_params;

static void $NAME(const qk_reciprocal_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = 1.0f / x[i];
}
