//! kernel quickgelu_f32
//! also f64
//! math
// y = x / (1 + exp(-alpha * x)) (com.microsoft QuickGelu). y may be x.
typedef struct {
    int64_t n;
    float alpha;
} qk_quickgelu_f32_params;

static void $NAME(const qk_quickgelu_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float v = p->alpha * x[i], e = expf(v < 0.0f ? v : -v);
        y[i] = x[i] * ((v < 0.0f ? e : 1.0f) / (1.0f + e));
    }
}
