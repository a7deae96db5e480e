//! chunk log2_fixed
/* log2(v / 2^31) in 2^-28, 2^31 <= v < 2^62, less than 2^-27 too small: squaring a number of [1, 2)
 * yields the bits of its logarithm one by one. */
static int64_t qk_log2_fixed(uint64_t v) {
    int64_t result = 0;
    int32_t i;
    for (; v >= (uint64_t)1 << 32; v >>= 1)
        result++;
    for (i = 0; i < 28; i++) {
        v = v * v >> 31;
        result <<= 1;
        if (v >= (uint64_t)1 << 32) {
            v >>= 1;
            result++;
        }
    }
    return result;
}
