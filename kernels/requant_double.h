//! chunk requant_double
//! uses cut32
/* acc * m * 2^k in fixed point, rounded twice and clamped to +-2^30; m, k and acc as in
 * requant_single. gemmlowp's scheme: the upper half of the doubled product, rounded half up
 * (SaturatingRoundingDoublingHighMul), then a shift rounded half away from zero
 * (RoundingDivideByPOT). A multiplier of 1 or more shifts the sum to the left first, saturating. */
static int32_t qk_requant_double(int64_t acc, int32_t m, int32_t k) {
    int32_t left = k > -31 ? k + 31 : 0, right = k < -31 ? -31 - k : 0;
    int64_t v = qk_cut32(qk_cut32(acc) * ((int64_t)1 << left)) * m, q;
    q = (v + (v >= 0 ? 1073741824 : -1073741823)) / 2147483648;
    if (right > 0) {
        int64_t half = (int64_t)1 << (right - 1);
        q = (q < 0 ? q - half : q + half) / (2 * half);
    }
    return (int32_t)(q > 1073741824 ? 1073741824 : q < -1073741824 ? -1073741824 : q);
}
