//! chunk recur_clamp
/* v, or +-most where it is beyond. */
static int64_t qk_recur_clamp(int64_t v, int64_t most) {
    return v < -most ? -most : v > most ? most : v;
}
