//! kernel widen_f32
// y = x in double.
typedef struct {
    int64_t n;
} qk_widen_f32_params;

static void $NAME(const qk_widen_f32_params *p, const float *x, double *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = (double)x[i];
}
