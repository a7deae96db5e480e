//! chunk round_fixed
/* v / 2^shift rounded half to even, 0 <= shift < 63, clamped to +-2^30. */
static int32_t qk_round_fixed(int64_t v, int32_t shift) {
    uint64_t a = v < 0 ? 0u - (uint64_t)v : (uint64_t)v, q = a >> shift;
    uint64_t twice = (a - (q << shift)) << 1, one = (uint64_t)1 << shift;
    q += twice > one || (twice == one && (q & 1u)) ? 1u : 0u;
    if (q > 1073741824u)
        q = 1073741824u;
    return v < 0 ? -(int32_t)q : (int32_t)q;
}
