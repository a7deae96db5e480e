//! chunk gemm_tile_neon
//! uses column
/* gemm_tile with the 16-bit products of NEON: each column has a vector of sums, one for each k of a
 * step. */
#if defined(QK_NEON)
enum { QK_ROWS = 4, QK_COLUMNS = 4 };

static inline void qk_step(int32x4_t *sum, const uint8_t *a, int16x8_t w01, int16x8_t w23) {
    uint32_t four;
    int16x8_t x; /* 4 k as 16 bits, twice */
    memcpy(&four, a, 4);
    x = vreinterpretq_s16_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four))));
    sum[0] = vmlal_s16(sum[0], vget_low_s16(w01), vget_low_s16(x));
    sum[1] = vmlal_high_s16(sum[1], w01, x);
    sum[2] = vmlal_s16(sum[2], vget_low_s16(w23), vget_low_s16(x));
    sum[3] = vmlal_high_s16(sum[3], w23, x);
}

static inline void qk_add_up(const int32x4_t *sum, int32_t *acc) {
    vst1q_s32(acc, vpaddq_s32(vpaddq_s32(sum[0], sum[1]), vpaddq_s32(sum[2], sum[3])));
}

static void qk_gemm_rows(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    int32x4_t z = vdupq_n_s32(0);
    int32x4_t s0[4] = {z, z, z, z}, s1[4] = {z, z, z, z}, s2[4] = {z, z, z, z}, s3[4] = {z, z, z, z};
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            int8x16_t v = vld1q_s8(w);
            int16x8_t w01 = vmovl_s8(vget_low_s8(v)), w23 = vmovl_high_s8(v);
            qk_step(s0, a0 + i, w01, w23);
            qk_step(s1, a1 + i, w01, w23);
            qk_step(s2, a2 + i, w01, w23);
            qk_step(s3, a3 + i, w01, w23);
        }
    }
    qk_add_up(s0, acc);
    qk_add_up(s1, acc + 32);
    qk_add_up(s2, acc + 64);
    qk_add_up(s3, acc + 96);
}

static void qk_gemm_row(const uint8_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    int32x4_t z = vdupq_n_s32(0), sum[4] = {z, z, z, z};
    int32_t i, s;
    for (s = 0; s < n; s++)
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            int8x16_t v = vld1q_s8(w);
            qk_step(sum, seg[s] + at + i, vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v));
        }
    qk_add_up(sum, acc);
}
#endif
