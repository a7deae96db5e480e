//! kernel leakyrelu_f32
//! also f64
// y = x < 0 ? alpha * x : x (ONNX LeakyRelu). y may be x.
typedef struct {
    int64_t n;
    float alpha;
} qk_leakyrelu_f32_params;

static void $NAME(const qk_leakyrelu_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    float alpha = p->alpha;
    for (i = 0; i < n; i++)
        y[i] = x[i] < 0.0f ? alpha * x[i] : x[i];
}
