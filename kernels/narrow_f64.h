//! kernel narrow_f64
// y = x rounded to float.
typedef struct {
    int64_t n;
} qk_narrow_f64_params;

static void $NAME(const qk_narrow_f64_params *p, const double *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++)
        y[i] = (float)x[i];
}
