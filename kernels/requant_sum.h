//! chunk requant_sum
//! uses requant
/* qk_requant of a sum of 32 bits. Sums and multipliers as layers have them take words of 32 bits:
 * the product's upper one holds the result q, `part` 32 bits behind the point. As the product is
 * rounded to 24 bits first, it is off by less than (q + 1) / 2^24: only so near a tie that matters.
 */
static int32_t qk_requant_sum(int32_t acc, int32_t c, int32_t k) {
    if (c >= 0 && (uint32_t)acc + 16777216u <= 33554432u && (uint32_t)(-25 - k) <= 30u) {
        uint32_t a = (uint32_t)(acc < 0 ? -acc : acc), half = 2147483648u;
        uint64_t p = (uint64_t)a * ((uint32_t)c << 8);
        uint32_t s = (uint32_t)(-24 - k), high = (uint32_t)(p >> 32);
        uint32_t q = high >> s, part = (uint32_t)p >> s | high << (32 - s);
        if ((part > half ? part - half : half - part) > (q + 1) << 8) {
            q += part >> 31;
            return acc < 0 ? -(int32_t)q : (int32_t)q;
        }
    }
    return qk_requant(acc, c, k);
}
