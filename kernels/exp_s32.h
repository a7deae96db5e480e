//! chunk exp_s32
/* The same for differences of 16-bit numbers: exp(-d) = exp(-(d & 255)) * exp(-(d & ~255)), whose
 * second factor follows at table[256]. */
static uint64_t qk_exp_s32(const uint32_t *table, int32_t d) {
    return ((uint64_t)table[d & 255] * table[256 + (d >> 8)] + 1073741824u) >> 31;
}
