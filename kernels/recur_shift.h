//! chunk recur_shift
/* v / 2^shift, rounded half away from zero; |v| < 2^62, 0 <= shift <= 62. */
static int64_t qk_recur_shift(int64_t v, int32_t shift) {
    uint64_t a = v < 0 ? 0u - (uint64_t)v : (uint64_t)v;
    a = (a + ((uint64_t)1 << shift >> 1)) >> shift;
    return v < 0 ? -(int64_t)a : (int64_t)a;
}

static int64_t qk_recur_clamp(int64_t v, int64_t most) {
    return v < -most ? -most : v > most ? most : v;
}
