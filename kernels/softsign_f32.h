//! kernel softsign_f32
//! also f64
//! math
// y = x / (1 + |x|) (ONNX Softsign). y may be x.
typedef struct {
    int64_t n;
} qk_softsign_f32_params;

static void $NAME(const qk_softsign_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = x[i] / (1.0f + fabsf(x[i]));
}
