//! kernel unpack
//! template Y=s8,u8
// y[i] = the i-th of n integers of `bits` bits (1, 2 or 4), packed as in ONNX: the first in the low
// bits of a byte.
typedef struct {
    int64_t n;
    int32_t bits;
} qk_unpack_params;

static void $NAME(const qk_unpack_params *p, const uint8_t *x, $Y *y) {
    int32_t bits = p->bits, mask = (1 << bits) - 1, sign = 1 << (bits - 1);
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        int32_t v = (x[i * bits / 8] >> (i * bits % 8)) & mask;
        //! if Y=s8
        y[i] = (int8_t)((v ^ sign) - sign);
        //! else
        (void)sign;
        y[i] = (uint8_t)v;
        //! end
    }
}
