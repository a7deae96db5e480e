//! kernel clamp_f32
// y = min(max(x, lo), hi): Relu and Clip; a NaN stays one. y may be x.
typedef struct {
    int64_t n;
    float lo, hi;
} qk_clamp_f32_params;

static void $NAME(const qk_clamp_f32_params *p, const float *x, float *y) {
    int64_t i;
    for (i = 0; i < p->n; i++)
        y[i] = x[i] < p->lo ? p->lo : x[i] > p->hi ? p->hi : x[i];
}
