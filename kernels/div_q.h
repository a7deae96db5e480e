//! kernel div_q
//! template T=s8,u8,s16,u16
//! uses walk row_at saturate round_ratio
// y = saturate(round_half_even((a - az) * sa / ((b - bz) * sb) / sy) + yz), broadcasting like binary. m is
// sa / (sb * sy) times 2^shift (requant_quotient prepares it, and states the error). By 0 it is infinite,
// which saturates, and of 0 by 0 what QuantizeLinear makes of NaN, the lowest value of the type. y may be
// a or b when that is contiguous too.
typedef struct {
    int32_t rank, dim[8], as[8], bs[8];
    int32_t az, bz, yz, lo, hi, shift;
    int64_t m;
} qk_div_q_params;

static $T $NAME_one(const qk_div_q_params *p, $T a, $T b) {
    int64_t va = (int64_t)a - p->az, vb = (int64_t)b - p->bz, v = va * p->m;
    if (vb == 0)
        return va > 0 ? ($T)p->hi : va < 0 ? ($T)p->lo : $TMIN;
    return ($T)qk_saturate(qk_round_ratio(vb < 0 ? -v : v, (vb < 0 ? -vb : vb) * ((int64_t)1 << p->shift)) + p->yz, p->lo, p->hi);
}

static void $NAME(const qk_div_q_params *p, const $T *a, const $T *b, $T *y) {
    int32_t index[8] = {0}, last = p->rank - 1, inner = p->rank ? p->dim[last] : 1, i;
    ptrdiff_t sa = p->rank ? p->as[last] : 0, sb = p->rank ? p->bs[last] : 0;
    ptrdiff_t rows = qk_rows(p->dim, last), row;
    for (row = 0; row < rows; row++, y += inner) {
        const $T *u = a + qk_row_at(index, p->as, last), *v = b + qk_row_at(index, p->bs, last);
        for (i = 0; i < inner; i++)
            y[i] = $NAME_one(p, u[i * sa], v[i * sb]);
        qk_next_row(index, p->dim, last);
    }
}
