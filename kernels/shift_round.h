//! chunk shift_round
/* v / 2^shift, rounded half away from zero; |v| < 2^63, 0 <= shift <= 63. */
static int64_t qk_shift_round(int64_t v, int32_t shift) {
    uint64_t a = v < 0 ? 0u - (uint64_t)v : (uint64_t)v;
    a = (a + ((uint64_t)1 << shift >> 1)) >> shift;
    return v < 0 ? -(int64_t)a : (int64_t)a;
}
