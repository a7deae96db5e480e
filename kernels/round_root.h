//! chunk round_root
/* The square root of sum * m / 2^shift, rounded half to even and clamped to 2^20; m < 2^31. Of the sum as
 * round_wide has it. */
static int32_t qk_round_root(uint64_t sum, int32_t m, int32_t shift) {
    uint64_t most = (uint64_t)1 << 42, all, four, twice;
    int32_t exact = 1, q;
    for (; sum >> 31; sum = sum >> 1 | (sum & 1u))
        shift--;
    all = sum * (uint64_t)m;
    shift -= 2; /* four times: the last bit of its root is a half */
    if (shift >= 0) {
        four = shift > 62 ? 0 : all >> shift;
        exact = shift <= 62 && four << shift == all;
    } else {
        four = shift < -42 || all > most >> -shift ? (all ? most : 0) : all << -shift;
    }
    four = four > most ? most : four;
    twice = qk_root(four);
    q = (int32_t)(twice >> 1);
    if (twice & 1u)
        q += exact && twice * twice == four ? q & 1 : 1;
    return q;
}
