//! chunk gemm_tile_mve
//! uses column
/* gemm_tile on the vectors of Armv8.1-M (Cortex-M55, M85): four columns in a vector, one k at a
 * time, whose weights are gathered once for four rows. */
#if defined(QK_MVE)
enum { QK_ROWS = 4, QK_COLUMNS = 4 };

static void qk_gemm_rows(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
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
    vst1q_s32(acc + 32, s1);
    vst1q_s32(acc + 64, s2);
    vst1q_s32(acc + 96, s3);
}

static void qk_gemm_row(const uint8_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    uint32x4_t every = vidupq_n_u32(0, 4);
    int32x4_t sum = vdupq_n_s32(0);
    int32_t i, s, j;
    for (s = 0; s < n; s++)
        for (i = 0; i < 4 * k; i += 4, w += 64)
            for (j = 0; j < 4; j++)
                sum = vmlaq_n_s32(sum, vldrbq_gather_offset_s32(w + j, every), seg[s][at + i + j]);
    vst1q_s32(acc, sum);
}
#endif
