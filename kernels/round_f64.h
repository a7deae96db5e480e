//! chunk round_f64
/* Nearest integer, ties to even, whatever the rounding mode and without libm; clamped to +-2^34.
 * Not for NaN. */
static int64_t qk_round_f64(double v) {
    int64_t q;
    double rest;
    if (v >= 17179869184.0)
        return 17179869184;
    if (v <= -17179869184.0)
        return -17179869184;
    q = (int64_t)v;
    rest = v - (double)q;
    if (rest > 0.5 || (rest == 0.5 && q % 2 != 0))
        q++;
    if (rest < -0.5 || (rest == -0.5 && q % 2 != 0))
        q--;
    return q;
}
