//! kernel thresholdedrelu_f32
//! also f64
// y = x > alpha ? x : 0 (ONNX ThresholdedRelu). y may be x.
typedef struct {
    int64_t n;
    float alpha;
} qk_thresholdedrelu_f32_params;

static void $NAME(const qk_thresholdedrelu_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    float alpha = p->alpha;
    for (i = 0; i < n; i++)
        y[i] = x[i] > alpha ? x[i] : 0.0f;
}
