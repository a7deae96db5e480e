//! kernel clamp_f32
//! also f64
// y = min(max(x, lo), hi): Relu and Clip; a NaN stays one. y may be x.
typedef struct {
    int64_t n;
    float lo, hi;
} qk_clamp_f32_params;

static void $NAME(const qk_clamp_f32_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    float lo = p->lo, hi = p->hi;
    for (i = 0; i < n; i++)
        y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];
}
