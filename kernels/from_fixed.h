//! kernel from_fixed
//! template Y=s8,u8,s16,u16
//! uses saturate round_fixed
// y = saturate(round_half_even(x * m / 2^shift) + yz): numbers of a fixed point to those of a scale.
typedef struct {
    int64_t n, m;
    int32_t shift, yz, lo, hi;
} qk_from_fixed_params;

static void $NAME(const qk_from_fixed_params *p, const int32_t *x, $Y *y) {
    int64_t i;
    for (i = 0; i < p->n; i++)
        y[i] = ($Y)qk_saturate(qk_round_fixed(x[i] * p->m, p->shift) + p->yz, p->lo, p->hi);
}
