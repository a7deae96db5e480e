//! chunk requant_single
//! uses cut32
/* acc * m * 2^k in fixed point, rounded once, half up, and clamped to +-2^30. 2^30 <= |m| < 2^31 or
 * m = 0; -62 <= k <= -1. A sum beyond int32 counts as the nearest that int32 holds. TFLite's single
 * rounding (newer reference kernels, ruy, XNNPACK). Raised by 2^63 the product is unsigned, for
 * which C defines what a shift does. */
static int32_t qk_requant_single(int64_t acc, int32_t m, int32_t k) {
    int64_t p = (int64_t)(int32_t)qk_cut32(acc) * m;
    uint64_t zero = (uint64_t)1 << 63, most = 1073741824, v, q;
    int32_t n = -k;
    if (n > 32) { /* the upper word is enough */
        uint32_t low = 2147483648u, s = (uint32_t)n - 32;
        uint32_t high = (uint32_t)((uint64_t)p >> 32) + ((uint32_t)1 << (s - 1)) + low;
        return (int32_t)(high >> s) - (int32_t)(low >> s);
    }
    v = (uint64_t)(p + ((int64_t)1 << (n - 1))) + zero;
    q = v >> n;
    zero >>= n;
    if (q >= zero)
        return (int32_t)(q - zero > most ? most : q - zero);
    return -(int32_t)(zero - q > most ? most : zero - q);
}
