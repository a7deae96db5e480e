//! kernel mul_q
//! template T=s8,u8,s16,u16 R=exact,single,double,shift
//! skip R!=exact T!=s8,u8
//! uses walk row_at saturate requant$r
//! uses requant_add if R=exact T=s8,u8
// y = saturate(round_half_even((a - az) * (b - bz) * c * 2^k) + yz), broadcasting like binary; the
// product is exact and requantized with m = c * 2^k = float32(float32(sa * sb) / sy). Exact
// products of 8 bits are round_half_even((a - az) * (b - bz) * m + yz), the sum in float32 too, as
// the kernel of onnxruntime behind QLinearMul does it (measured: 1.31): with an odd yz ties go the
// other way. y may be a or b when that is contiguous too.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t az, bz, yz, lo, hi, c, k;
} qk_mul_q_params;

static void $NAME(const qk_mul_q_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    int32_t az = p->az, bz = p->bz, yz = p->yz, lo = p->lo, hi = p->hi, c = p->c, k = p->k;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++) {
            //! if R=exact T=s8,u8
            int32_t product = (u[i * sa] - az) * (v[i * sb] - bz);
            y[i] = ($T)qk_saturate(qk_requant_add(product, c, k, yz), lo, hi);
            //! else
            int64_t va = u[i * sa] - az, vb = v[i * sb] - bz;
            y[i] = ($T)qk_saturate(qk_requant$r(va * vb, c, k) + yz, lo, hi);
            //! end
        }
        qk_next_row(index, p->dim, last);
    }
}
