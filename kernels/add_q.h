//! kernel add_q
//! template T=s8,u8,s16,u16
//! uses walk row_at saturate round_fixed
//! uses add_row_$t if T=s8,u8
// y = saturate(round_half_even(((a - az) * sa + (b - bz) * sb) / sy) + yz), broadcasting like
// binary. ma and mb are sa / sy and sb / sy times 2^shift (requant_add prepares them, and states
// the error); subtraction is a negative mb. y may be a or b when that is contiguous too.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t az, bz, yz, lo, hi, shift;
    int64_t ma, mb;
} qk_add_q_params;

static void $NAME(const qk_add_q_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    int32_t az = p->az, bz = p->bz, yz = p->yz, lo = p->lo, hi = p->hi, shift = p->shift;
    int64_t ma = p->ma, mb = p->mb;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        //! if T=s8,u8
        i = sa == 1 && sb == 1 ? qk_add_row_$t(p->az, p->bz, yz, lo, hi, shift, ma, mb, inner, u, v, y) : 0;
        //! else
        i = 0;
        //! end
        for (; i < inner; i++) {
            int64_t va = u[i * sa] - az, vb = v[i * sb] - bz;
            y[i] = ($T)qk_saturate(qk_round_fixed(va * ma + vb * mb, shift) + yz, lo, hi);
        }
        qk_next_row(index, p->dim, last);
    }
}
