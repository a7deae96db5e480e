//! kernel rint_f32
//! also f64
//! math
// y = the nearest integer, of two the even one (ONNX Round), whatever the rounding mode. y may be x.
typedef struct {
    int64_t n;
} qk_rint_f32_params;

static void $NAME(const qk_rint_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float low = floorf(x[i]), rest = x[i] - low;
        float up = rest > 0.5f || (rest == 0.5f && 2.0f * floorf(low / 2.0f) != low) ? 1.0f : 0.0f;
        y[i] = copysignf(low + up, x[i]);
    }
}
