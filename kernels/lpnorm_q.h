//! kernel lpnorm_q
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_ratio root
// y = saturate(round_half_even(d / |d| / sy) + yz) of the integers d = x - xz along the middle one of [outer,
// n, inner], with the sum of absolute values as norm or with p = 2 the root of the sum of squares; where that
// is 0 it stays 0 (ONNX LpNormalization). inv is 2^shift / sy (the bind function prepares it).
typedef struct {
    int32_t outer, n, inner, p, xz, yz, lo, hi, shift;
    int64_t inv;
} qk_lpnorm_q_params;

/* The norm, of squares times 2^*up: as a number of 31 bits. */
static int64_t $NAME_norm(const qk_lpnorm_q_params *p, const $X *x, int32_t *up) {
    uint64_t sum = 0;
    int32_t k;
    *up = 0;
    for (k = 0; k < p->n; k++) {
        int64_t v = (int64_t)x[(ptrdiff_t)k * p->inner] - p->xz;
        sum += (uint64_t)(p->p == 2 ? v * v : v < 0 ? -v : v);
    }
    if (p->p != 2 || sum == 0)
        return (int64_t)sum;
    for (; sum < (uint64_t)1 << 60; sum <<= 2)
        ++*up;
    return (int64_t)qk_root(sum);
}

static void $NAME(const qk_lpnorm_q_params *p, const $X *x, $Y *y) {
    int32_t o, i, k;
    for (o = 0; o < p->outer; o++)
        for (i = 0; i < p->inner; i++) {
            ptrdiff_t at = (ptrdiff_t)o * p->n * p->inner + i, step = p->inner;
            int32_t up, q = 0;
            int64_t norm = $NAME_norm(p, x + at, &up);
            for (k = 0; k < p->n; k++) {
                int64_t v = ((int64_t)x[at + k * step] - p->xz) * ((int64_t)1 << up);
                if (norm)
                    q = qk_round_ratio(v * p->inv, norm << p->shift);
                y[at + k * step] = ($Y)qk_saturate(q + p->yz, p->lo, p->hi);
            }
        }
}
