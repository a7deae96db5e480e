//! chunk requant_shift
//! uses cut32
/* acc * 2^k, rounded half up and clamped to +-2^30, by shifts alone; k is at most 30. m is not
 * read. Rounding half up is the floor plus the last bit that is cut off; raised by 2^31 the sum is
 * unsigned, for which C defines what a shift does. */
static int32_t qk_requant_shift(int64_t acc, int32_t m, int32_t k) {
    int32_t a = (int32_t)qk_cut32(acc), most = 1073741824, n = -k;
    uint32_t raised = (uint32_t)a + 2147483648u;
    (void)m;
    if (n > 31)
        return 0;
    if (n > 0)
        a = (int32_t)(raised >> n) - (int32_t)(2147483648u >> n) +
            (int32_t)((raised >> (n - 1)) & 1u);
    else if (k > 0)
        return a > most >> k ? most : a < -(most >> k) ? -most : a * (int32_t)(1u << k);
    return a > most ? most : a < -most ? -most : a;
}
