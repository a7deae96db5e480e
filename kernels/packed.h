//! chunk packed
/* The i-th of integers of `bits` bits (1, 2 or 4), packed as in ONNX: the first in the low bits of a
 * byte. `sign` is the value of the sign bit, 0 where there is none. */
static int32_t qk_packed_at(const uint8_t *x, ptrdiff_t i, int32_t bits, int32_t sign) {
    int32_t v = (x[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
    return (v ^ sign) - sign;
}
