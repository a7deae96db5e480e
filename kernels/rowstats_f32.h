//! kernel rowstats_f32
//! also f64
//! math
// Of each row of x[rows, n] the mean or, with `spread`, 1 / sqrt(variance + eps), where the variance is
// taken about the mean, or about 0 with `centre` 0. Rounding errors are carried along (Kahan).
typedef struct {
    int32_t rows, n, centre, spread;
    float eps;
} qk_rowstats_f32_params;

/* Mean of (x - about)^2, or of x - about. */
static float $NAME_mean(const float *x, int32_t n, float about, int32_t squared) {
    float sum = 0.0f, lost = 0.0f;
    int32_t i;
    for (i = 0; i < n; i++) {
        float v = x[i] - about, add = (squared ? v * v : v) - lost, next = sum + add;
        lost = (next - sum) - add;
        sum = next;
    }
    return sum / (float)n;
}

static void $NAME(const qk_rowstats_f32_params *p, const float *x, float *y) {
    int32_t r;
    for (r = 0; r < p->rows; r++, x += p->n) {
        float mean = p->centre ? $NAME_mean(x, p->n, 0.0f, 0) : 0.0f;
        y[r] = p->spread ? 1.0f / sqrtf($NAME_mean(x, p->n, mean, 1) + p->eps) : mean;
    }
}
