//! chunk requant
/* Requantization: acc * m for a float32 multiplier m = c * 2^k (|c| < 2^24), rounded half to even,
 * exactly as the float32 expression rint((float)acc * m) but in integers. float32 arithmetic rounds
 * to 24 significant bits twice, once for acc and once for the product. Where the product is not
 * within its own rounding error of a tie, the second rounding cannot change the result. Results
 * beyond +-2^24 are only meant to be saturated. */
static uint64_t qk_round_shift(uint64_t v, int32_t s) { /* v / 2^s, half to even; 0 <= s < 64 */
    uint64_t q, rest, half;
    if (s == 0)
        return v;
    q = v >> s;
    rest = v - (q << s);
    half = (uint64_t)1 << (s - 1);
    return q + (rest > half || (rest == half && (q & 1u)) ? 1u : 0u);
}

static uint64_t qk_round24(uint64_t v, int32_t *shift) { /* to 24 significant bits */
    int32_t s = 0;
    while (v >> s >= 16777216u)
        s += 1;
    *shift = s;
    return qk_round_shift(v, s);
}

static int32_t qk_requant(int64_t acc, int32_t c, int32_t k) {
    uint64_t a = acc < 0 ? 0u - (uint64_t)acc : (uint64_t)acc;
    uint64_t m = (uint64_t)(c < 0 ? -(int64_t)c : (int64_t)c);
    uint64_t p, q;
    int32_t t = -k, s;
    if (a > 16777216u) {
        a = qk_round24(a, &s);
        t -= s;
    }
    p = a * m; /* at most 2^48 */
    if (t >= 49) {
        q = 0;
    } else if (t <= 0) {
        q = p == 0 ? 0 : p >> 30 != 0 || t <= -30 ? 1073741824u : p << -t;
    } else {
        uint64_t half = (uint64_t)1 << (t - 1), rest = p & (2 * half - 1);
        uint64_t gap = rest > half ? rest - half : half - rest;
        q = p >> t;
        if (gap > p >> 24) {
            q += rest > half ? 1u : 0u;
        } else {
            p = qk_round24(p, &s);
            q = s <= t ? qk_round_shift(p, t - s) : 1073741824u;
        }
    }
    if (q > 1073741824u)
        q = 1073741824u;
    return (acc < 0) != (c < 0) ? -(int32_t)q : (int32_t)q;
}
