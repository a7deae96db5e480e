//! chunk gemm_tile_mve
//! uses column
/* gemm_tile on the vectors of Armv8.1-M (Cortex-M55, M85): four columns in a vector, one k at a
 * time, whose weights are gathered once for four rows. */
#if defined(QK_MVE)
static void qk_gemm_4x4(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                        const int8_t *w, int32_t k, int32_t rows, int32_t *acc) {
    uint32x4_t every = vidupq_n_u32(0, 4);
    int32x4_t s0 = vdupq_n_s32(0), s1 = s0, s2 = s0, s3 = s0;
    int32_t i, s, j;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64)
            for (j = 0; j < 4; j++) {
                int32x4_t v = vldrbq_gather_offset_s32(w + j, every);
                s0 = vmlaq_n_s32(s0, v, a0[i + j]);
                s1 = vmlaq_n_s32(s1, v, a1[i + j]);
                s2 = vmlaq_n_s32(s2, v, a2[i + j]);
                s3 = vmlaq_n_s32(s3, v, a3[i + j]);
            }
    }
    vst1q_s32(acc, s0);
    if (rows > 1) {
        vst1q_s32(acc + 32, s1);
        vst1q_s32(acc + 64, s2);
        vst1q_s32(acc + 96, s3);
    }
}

static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i, j;
    for (j = 0; j < 4 * blocks; j++) {
        const int8_t *v = w + (ptrdiff_t)64 * k * n * (j / 4) + (ptrdiff_t)16 * (j % 4);
        int32_t *to = acc + (ptrdiff_t)4 * j;
        for (i = 0; i + 4 <= rows; i += 4)
            qk_gemm_4x4(a, n, at + i * lda, lda, v, k, 4, to + (ptrdiff_t)32 * i);
        for (; i < rows; i++) /* one row stands for four */
            qk_gemm_4x4(a, n, at + i * lda, 0, v, k, 1, to + (ptrdiff_t)32 * i);
    }
}
#endif
