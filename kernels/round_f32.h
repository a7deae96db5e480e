//! chunk round_f32
/* Nearest integer, ties to even, whatever the rounding mode and without libm; clamped to +-2^33.
 * Not for NaN. */
static int64_t qk_round_f32(float v) {
    int64_t q;
    float rest;
    if (v >= 8589934592.0f)
        return 8589934592;
    if (v <= -8589934592.0f)
        return -8589934592;
    q = (int64_t)v;
    rest = v - (float)q;
    if (rest > 0.5f || (rest == 0.5f && q % 2 != 0))
        q++;
    if (rest < -0.5f || (rest == -0.5f && q % 2 != 0))
        q--;
    return q;
}
