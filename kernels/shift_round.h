//! chunk shift_round
/* v / 2^shift rounded to an integer, ties away from 0, 1 <= shift <= 63. */
static int64_t qk_shift_round(int64_t v, int32_t shift) {
    uint64_t a = v < 0 ? 0u - (uint64_t)v : (uint64_t)v, half = (uint64_t)1 << (shift - 1);
    a = (a + half) >> shift;
    return v < 0 ? -(int64_t)a : (int64_t)a;
}
