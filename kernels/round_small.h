//! chunk round_small
/* Nearest integer, ties to even, whatever the rounding mode and without libm; clamped to +-2^22, as
 * is NaN. Compares integers only: compilers do not vectorise over float comparisons, which may
 * trap. 2^25 times the rest is an integer for every rest of a half or more. */
static int32_t qk_round_small(float v) {
    int32_t bits, size, q, rest;
    memcpy(&bits, &v, sizeof bits);
    size = bits & 0x7fffffff;
    bits = size > 0x4a800000 ? (bits ^ size) | 0x4a800000 : bits;
    memcpy(&v, &bits, sizeof v);
    q = (int32_t)v;
    rest = (int32_t)((v - (float)q) * 33554432.0f);
    q += (rest > 16777216) | ((rest == 16777216) & q);
    q -= (rest < -16777216) | ((rest == -16777216) & q);
    return q;
}
