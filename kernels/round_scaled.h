//! chunk round_scaled
/* v * n / (d * 2^s) rounded half to even, exactly, and clamped to +-2^30: |v| < 2^61, |n| and d up
 * to 2^24 with |n| < 2 d, 1 <= s <= 63. d is 1 only where |n| is. The product has up to 85 bits and
 * is divided in two steps, as by hand. */
static int32_t qk_round_scaled(int64_t v, int32_t n, int32_t d, int32_t s) {
    uint64_t q = v < 0 ? 0u - (uint64_t)v : (uint64_t)v, rest = 0, half = (uint64_t)1 << (s - 1), cut;
    if (d != 1) {
        uint64_t by = (uint64_t)(n < 0 ? -n : n), over = (uint64_t)d;
        uint64_t low = (q & 4294967295u) * by, high = (q >> 32) * by + (low >> 32);
        q = high / over;
        low = (low & 4294967295u) | (high - q * over) << 32;
        q = (q << 32) + low / over;
        rest = low % over;
    }
    cut = q & (half - 1 + half);
    q >>= s;
    q += cut > half || (cut == half && (rest || (q & 1u))) ? 1u : 0u;
    if (q > 1073741824u)
        q = 1073741824u;
    return (v < 0) != (n < 0) ? -(int32_t)q : (int32_t)q;
}
