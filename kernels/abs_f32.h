//! kernel abs_f32
//! also f64
//! math
// y = |x| (ONNX Abs). y may be x.
typedef struct {
    int64_t n;
} qk_abs_f32_params;

static void $NAME(const qk_abs_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = fabsf(x[i]);
}
