//! kernel add_q
//! template T=s8,u8,s16,u16
//! uses saturate round_fixed
//! uses add_row_$t if T=s8,u8
// y = saturate(round_half_even(((a - az) * sa + (b - bz) * sb) / sy) + yz), broadcasting like
// add_f32. ma and mb are sa / sy and sb / sy times 2^shift (requant_add prepares them, and states
// the error); subtraction is a negative mb. y may be a or b when that is contiguous too.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t az, bz, yz, lo, hi, shift;
    int64_t ma, mb;
} qk_add_q_params;

static void $NAME(const qk_add_q_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, d, i;
    int32_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    int32_t az = p->az, bz = p->bz, yz = p->yz, lo = p->lo, hi = p->hi, shift = p->shift;
    int64_t ma = p->ma, mb = p->mb;
    ptrdiff_t ia = 0, ib = 0, rows = 1, row;
    for (d = 0; d < last; d++)
        rows *= p->dim[d];
    for (row = 0; row < rows; row++) {
        //! if T=s8,u8
        i = sa == 1 && sb == 1 ? qk_add_row_$t(p->az, p->bz, yz, lo, hi, shift, ma, mb, inner, a + ia, b + ib, y) : 0;
        //! else
        i = 0;
        //! end
        for (; i < inner; i++) {
            int64_t va = a[ia + (ptrdiff_t)i * sa] - az, vb = b[ib + (ptrdiff_t)i * sb] - bz;
            y[i] = ($T)qk_saturate(qk_round_fixed(va * ma + vb * mb, shift) + yz, lo, hi);
        }
        y += inner;
        for (d = last - 1; d >= 0; d--) {
            ia += p->as[d];
            ib += p->bs[d];
            if (++index[d] < p->dim[d])
                break;
            ia -= (ptrdiff_t)p->as[d] * p->dim[d];
            ib -= (ptrdiff_t)p->bs[d] * p->dim[d];
            index[d] = 0;
        }
    }
}
