//! chunk gemm_tile_dsp
//! uses column
/* gemm_tile with the paired 16-bit products of Armv7E-M and Armv8-M (Cortex-M4, M7, M33). Bytes 0
 * and 2 of a word are one pair, 1 and 3 the other, of activations and weights alike. */
#if defined(QK_DSP)
enum { QK_ROWS = 2, QK_COLUMNS = 2 };

static inline uint32_t qk_word(const void *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline int32_t qk_dot4(int32_t sum, uint16x2_t a02, uint16x2_t a13, int16x2_t w02,
                              int16x2_t w13) {
    return __smlad((int16x2_t)a13, w13, __smlad((int16x2_t)a02, w02, sum));
}

/* Bytes 0 and 2. The mask does in one instruction what a shift and UXTB16 do. */
static inline uint16x2_t qk_even(uint32_t x) {
    return (uint16x2_t)(x & 0x00ff00ffu);
}

static void qk_gemm_rows(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    int32_t i, s, s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (s = 0; s < n; s++) {
        const uint8_t *a = seg[s] + at;
        for (i = k; i > 0; i--, a += 4, w += 64) {
            uint32_t x0 = qk_word(a), x1 = qk_word(a + lda), w0 = qk_word(w), w1 = qk_word(w + 4);
            uint16x2_t x002 = qk_even(x0), x013 = qk_even(x0 >> 8);
            uint16x2_t x102 = qk_even(x1), x113 = qk_even(x1 >> 8);
            int16x2_t w02 = __sxtb16((int8x4_t)w0), w13 = __sxtb16((int8x4_t)(w0 >> 8));
            s00 = qk_dot4(s00, x002, x013, w02, w13);
            s10 = qk_dot4(s10, x102, x113, w02, w13);
            w02 = __sxtb16((int8x4_t)w1);
            w13 = __sxtb16((int8x4_t)(w1 >> 8));
            s01 = qk_dot4(s01, x002, x013, w02, w13);
            s11 = qk_dot4(s11, x102, x113, w02, w13);
        }
    }
    acc[0] = s00;
    acc[1] = s01;
    acc[32] = s10;
    acc[33] = s11;
}
#endif
