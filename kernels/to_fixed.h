//! kernel to_fixed
//! template X=s8,u8,s16,u16
//! uses shift_round recur_clamp
// y = (x - xz) * m / 2^shift, rounded and saturated: numbers of a scale to those of a fixed point.
typedef struct {
    int64_t n, m;
    int32_t shift, xz;
} qk_to_fixed_params;

static void $NAME(const qk_to_fixed_params *p, const $X *x, int32_t *y) {
    int64_t i;
    for (i = 0; i < p->n; i++)
        y[i] = (int32_t)qk_recur_clamp(qk_shift_round(((int64_t)x[i] - p->xz) * p->m, p->shift),
                                       2147483647);
}
