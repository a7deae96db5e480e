//! chunk unpack_row
//! uses packed
/* n packed integers from the first-th on. */
static void qk_unpack_row(const uint8_t *x, ptrdiff_t first, int32_t n, int32_t bits, int32_t sign,
                          int8_t *out) {
    int32_t i = 0;
    if (bits == 4 && first % 2 == 0) /* whole bytes */
        for (x += first / 2, first = 0; i + 2 <= n; i += 2) {
            int32_t two = x[i / 2];
            out[i] = (int8_t)(((two & 15) ^ sign) - sign);
            out[i + 1] = (int8_t)((two >> 4 ^ sign) - sign);
        }
    for (; i < n; i++)
        out[i] = (int8_t)qk_packed_at(x, first + i, bits, sign);
}
