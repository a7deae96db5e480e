//! chunk unpack_row
//! uses packed
/* n packed integers from the first-th on. */
static void qk_unpack_row(const uint8_t *x, ptrdiff_t first, int32_t n, int32_t bits, int32_t sign,
                          int8_t *out) {
    int32_t i;
    for (i = 0; i < n; i++)
        out[i] = (int8_t)qk_packed_at(x, first + i, bits, sign);
}
