//! chunk exp_s16
/* 2^31 exp(-d * step) out of the table of softmax_table, for differences of 8-bit numbers. */
static uint64_t qk_exp_s16(const uint32_t *table, int32_t d) {
    return table[d];
}
