//! kernel mul_q
//! template T=s8,u8,s16,u16 R=exact,single,double,shift
//! skip R!=exact T!=s8,u8
//! uses saturate requant$r
// y = saturate(round_half_even((a - az) * (b - bz) * c * 2^k) + yz), broadcasting like add_f32; the
// product is exact and requantized with m = c * 2^k = float32(float32(sa * sb) / sy), as QLinearMul
// does. y may be a or b when that is contiguous too.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t az, bz, yz, lo, hi, c, k;
} qk_mul_q_params;

static void $NAME(const qk_mul_q_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, d, i;
    int32_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    int32_t az = p->az, bz = p->bz, yz = p->yz, lo = p->lo, hi = p->hi, c = p->c, k = p->k;
    ptrdiff_t ia = 0, ib = 0, rows = 1, row;
    for (d = 0; d < last; d++)
        rows *= p->dim[d];
    for (row = 0; row < rows; row++) {
        for (i = 0; i < inner; i++) {
            int64_t va = a[ia + (ptrdiff_t)i * sa] - az, vb = b[ib + (ptrdiff_t)i * sb] - bz;
            y[i] = ($T)qk_saturate(qk_requant$r(va * vb, c, k) + yz, lo, hi);
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
