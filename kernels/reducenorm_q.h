//! kernel reducenorm_q
//! template T=s8,u8,s16,u16
//! uses saturate round_fixed round_wide root round_root walk row_at
// y = saturate(round_half_even(s * m / 2^shift) + yz) of the sum s of |x - xz| over the reduced dimensions
// (what = 1), or of (x - xz)^2 (2), and the root of s * m / 2^shift (3): ONNX ReduceL1, ReduceSumSquare,
// ReduceL2. Dimensions as in reducesum_q; requant_real prepares m.
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
    int32_t what, xz, yz, lo, hi, m, shift;
} qk_reducenorm_q_params;

static uint64_t $NAME_one(const qk_reducenorm_q_params *p, const $T *x) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    uint64_t sum = 0;
    for (row = 0; row < rows; row++) {
        const $T *u = x + qk_row_at(index, p->rstride, last);
        for (i = 0; i < inner; i++, u += step) {
            int64_t v = (int64_t)*u - p->xz;
            sum += (uint64_t)(p->what > 1 ? v * v : v < 0 ? -v : v);
        }
        qk_next_row(index, p->rdim, last);
    }
    return sum;
}

static void $NAME(const qk_reducenorm_q_params *p, const $T *x, $T *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        uint64_t sum = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept));
        int32_t q = p->what == 3 ? qk_round_root(sum, p->m, p->shift) : qk_round_wide(sum, p->m, p->shift);
        y[i] = ($T)qk_saturate(q + p->yz, p->lo, p->hi);
        qk_next_row(index, p->kdim, p->kept);
    }
}
