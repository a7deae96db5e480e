//! chunk gemm_tile_neon
//! uses column
/* gemm_tile with the 16-bit products of NEON: each column has a vector of sums, one for each k of a
 * step. */
#if defined(QK_NEON)
static inline int16x4_t qk_four(const uint8_t *a) { /* 4 k as 16 bits */
    uint32_t four;
    memcpy(&four, a, 4);
    return vreinterpret_s16_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)))));
}

static inline int32x4_t qk_sums(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

/* 4 rows x 4 columns; the rows may be one and the same. */
static void qk_gemm_4x4(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t rows, int32_t *acc) {
    int32x4_t sum[16];
    int32_t i, s, r;
    for (i = 0; i < 16; i++)
        sum[i] = vdupq_n_s32(0);
    for (s = 0; s < n; s++) {
        const uint8_t *a = seg[s] + at;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            int8x16_t v = vld1q_s8(w);
            int16x8_t w01 = vmovl_s8(vget_low_s8(v)), w23 = vmovl_high_s8(v);
            for (r = 0; r < 4; r++) {
                int16x4_t x = qk_four(a + r * lda + i);
                int16x8_t xx = vcombine_s16(x, x);
                sum[4 * r] = vmlal_s16(sum[4 * r], vget_low_s16(w01), x);
                sum[4 * r + 1] = vmlal_high_s16(sum[4 * r + 1], w01, xx);
                sum[4 * r + 2] = vmlal_s16(sum[4 * r + 2], vget_low_s16(w23), x);
                sum[4 * r + 3] = vmlal_high_s16(sum[4 * r + 3], w23, xx);
            }
        }
    }
    for (r = 0; r < rows; r++)
        vst1q_s32(acc + (ptrdiff_t)32 * r,
                  qk_sums(sum[4 * r], sum[4 * r + 1], sum[4 * r + 2], sum[4 * r + 3]));
}

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i, j;
    for (j = 0; j < 4 * blocks; j++) {
        const int8_t *v = w + (ptrdiff_t)64 * k * n * (j / 4) + (ptrdiff_t)16 * (j % 4);
        int32_t *to = acc + (ptrdiff_t)4 * j;
        for (i = 0; i + 4 <= rows; i += 4)
            qk_gemm_4x4(a, n, at + i * lda, lda, v, k, 4, to + (ptrdiff_t)32 * i);
        for (; i < rows; i++)
            qk_gemm_4x4(a, n, at + i * lda, 0, v, k, 1, to + (ptrdiff_t)32 * i);
    }
}
#endif
