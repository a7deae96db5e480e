//! chunk saturate
static int32_t qk_saturate(int32_t v, int32_t lo, int32_t hi) {
    return v < lo ? lo : v > hi ? hi : v;
}
