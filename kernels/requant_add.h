//! chunk requant_add
//! uses requant
/* rint((float)acc * m + (float)z) for the multiplier m = c * 2^k of qk_requant, |acc| < 2^24 and
 * |z| < 2^8, exactly as float32 arithmetic rounds the product, then the sum, but in integers. As
 * the zero point is added before the sum is rounded to an integer, ties go to even results. Where
 * the sum is not within both rounding errors of a tie, they change nothing. */
static int32_t qk_requant_add(int32_t acc, int32_t c, int32_t k, int32_t z) {
    int negative = (acc < 0) != (c < 0);
    uint64_t p = (uint64_t)(acc < 0 ? -(int64_t)acc : (int64_t)acc) *
                 (uint64_t)(c < 0 ? -(int64_t)c : (int64_t)c);
    uint64_t half, rest, gap, size;
    int64_t sum;
    int32_t t = -k, s = 0;
    if (t <= 0 || t >= 49)
        return qk_requant(acc, c, k) + z;
    half = (uint64_t)1 << (t - 1);
    rest = p & (2 * half - 1);
    gap = rest > half ? rest - half : half - rest;
    size = (uint64_t)(z < 0 ? -z : z) << t;
    if (gap > (p + size) >> 23 || p >> t >= 16777216u)
        return qk_requant(acc, c, k) + z;
    p = qk_round24(p, &s);
    p <<= s;
    sum = (negative ? -(int64_t)p : (int64_t)p) + (z < 0 ? -(int64_t)size : (int64_t)size);
    p = qk_round24(sum < 0 ? 0u - (uint64_t)sum : (uint64_t)sum, &s);
    p = s <= t ? qk_round_shift(p, t - s) : p << (s - t);
    return sum < 0 ? -(int32_t)p : (int32_t)p;
}
