//! kernel pack
//! template X=s8,u8
// The inverse of unpack: n integers of `bits` bits (1, 2 or 4) in as few bytes as hold them, the rest
// of the last one 0.
typedef struct {
    int64_t n;
    int32_t bits;
} qk_pack_params;

static void $NAME(const qk_pack_params *p, const $X *x, uint8_t *y) {
    int32_t bits = p->bits, mask = (1 << bits) - 1;
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        int32_t at = (int32_t)(i * bits % 8), v = (x[i] & mask) << at;
        y[i * bits / 8] = (uint8_t)(at == 0 ? v : y[i * bits / 8] | v);
    }
}
