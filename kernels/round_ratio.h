//! chunk round_ratio
/* v / d rounded half to even, d > 0, clamped to +-2^30. */
static int32_t qk_round_ratio(int64_t v, int64_t d) {
    uint64_t a = v < 0 ? 0u - (uint64_t)v : (uint64_t)v, b = (uint64_t)d, q = a / b;
    uint64_t rest = a - q * b;
    q += rest > b - rest || (rest == b - rest && (q & 1u)) ? 1u : 0u;
    if (q > 1073741824u)
        q = 1073741824u;
    return v < 0 ? -(int32_t)q : (int32_t)q;
}
