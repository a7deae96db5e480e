//! chunk round_wide
/* sum * m / 2^shift rounded half to even, m < 2^31, clamped to +2^30. What does not fit 31 bits of the
 * sum is cut off, but for whether there was any. */
static int32_t qk_round_wide(uint64_t sum, int32_t m, int32_t shift) {
    for (; sum >> 31; sum = sum >> 1 | (sum & 1u))
        shift--;
    sum *= (uint64_t)m;
    if (shift <= 0)
        return sum ? 1073741824 : 0;
    return shift > 62 ? 0 : qk_round_fixed((int64_t)sum, shift);
}
