//! kernel requantize
//! template X=s8,u8,s16,u16 Y=s8,u8,s16,u16
//! uses saturate round_fixed
// y = saturate(round_half_even((x - xz) * sx / sy) + yz); m is sx / sy times 2^shift (requant_ratio
// prepares it). This rounds the exact real value once, while QuantizeLinear(DequantizeLinear(x))
// rounds to float32 twice before: the two differ by at most one step, and only within 2^-22 of the
// value's magnitude from a tie. For 8-bit x, lut8 gives that operator exactly. Works front to back:
// y may lie over x.
typedef struct {
    int64_t n, m;
    int32_t shift, xz, yz, lo, hi;
} qk_requantize_params;

static void $NAME(const qk_requantize_params *p, const $X *x, $Y *y) {
    int64_t n = p->n, m = p->m, i;
    int32_t shift = p->shift, xz = p->xz, yz = p->yz, lo = p->lo, hi = p->hi;
    for (i = 0; i < n; i++)
        y[i] = ($Y)qk_saturate(qk_round_fixed((x[i] - xz) * m, shift) + yz, lo, hi);
}
