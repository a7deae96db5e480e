//! kernel shrink_f32
//! also f64
// y = x < -lambd ? x + bias : x > lambd ? x - bias : 0 (ONNX Shrink). y may be x.
typedef struct {
    int64_t n;
    float bias, lambd;
} qk_shrink_f32_params;

static void $NAME(const qk_shrink_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    float bias = p->bias, lambd = p->lambd;
    for (i = 0; i < n; i++)
        y[i] = x[i] < -lambd ? x[i] + bias : x[i] > lambd ? x[i] - bias : 0.0f;
}
