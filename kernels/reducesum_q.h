//! kernel reducesum_q
//! template T=s8,u8,s16,u16 R=exact,single,double
//! skip R!=exact T!=s8,u8
//! uses saturate requant$r walk row_at
// y = saturate(round_half_even(sum over the reduced dimensions of (x - xz) * m) + yz) with
// m = c * 2^k as in requant: ReduceSum and ReduceMean. Dimensions are given with their strides in x,
// in elements; the kept ones are those of y.
typedef struct {
    int32_t kept, kdim[8], kstride[8];
    int32_t reduced, rdim[8], rstride[8];
    int32_t xz, yz, lo, hi, c, k;
} qk_reducesum_q_params;

static int64_t $NAME_one(const qk_reducesum_q_params *p, const $T *x) {
    int32_t index[8] = {0}, last = p->reduced - 1, inner = p->reduced ? p->rdim[last] : 1, i;
    ptrdiff_t rows = qk_rows(p->rdim, last), step = p->reduced ? p->rstride[last] : 0, row;
    int64_t sum = 0;
    for (row = 0; row < rows; row++) {
        const $T *u = x + qk_row_at(index, p->rstride, last);
        for (i = 0; i < inner; i++, u += step)
            sum += *u - p->xz;
        qk_next_row(index, p->rdim, last);
    }
    return sum;
}

static void $NAME(const qk_reducesum_q_params *p, const $T *x, $T *y) {
    int32_t index[8] = {0};
    ptrdiff_t n = qk_rows(p->kdim, p->kept), i;
    for (i = 0; i < n; i++) {
        int64_t sum = $NAME_one(p, x + qk_row_at(index, p->kstride, p->kept));
        y[i] = ($T)qk_saturate(qk_requant$r(sum, p->c, p->k) + p->yz, p->lo, p->hi);
        qk_next_row(index, p->kdim, p->kept);
    }
}
