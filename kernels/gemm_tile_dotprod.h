//! chunk gemm_tile_dotprod
//! uses column
/* gemm_tile with the dot products of Armv8.2. Without those of unsigned by signed bytes (I8MM)
 * activations are lowered by 128, which 128 times the sum of the weights makes up for. */
#if defined(QK_DOTPROD)
enum { QK_ROWS = 4, QK_COLUMNS = 8 };

static inline int32x4_t qk_four(const uint8_t *a) { /* 4 k, four times */
    uint32_t four;
    memcpy(&four, a, 4);
#if !defined(__ARM_FEATURE_MATMUL_INT8)
    four ^= 0x80808080u;
#endif
    return vreinterpretq_s32_u32(vdupq_n_u32(four));
}

static inline int32x4_t qk_dot4(int32x4_t sum, int8x16_t w, int32x4_t a) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
    return vusdotq_s32(sum, vreinterpretq_u8_s32(a), w);
#else
    return vdotq_s32(sum, w, vreinterpretq_s8_s32(a));
#endif
}

static inline int32x4_t qk_raised(int32x4_t sum, int8x16_t w) { /* half of what is made up for */
#if defined(__ARM_FEATURE_MATMUL_INT8)
    (void)w;
    return sum;
#else
    return vdotq_s32(sum, w, vdupq_n_s8(64));
#endif
}

static void qk_gemm_rows(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    int32x4_t s00 = vdupq_n_s32(0), s01 = s00, s10 = s00, s11 = s00;
    int32x4_t s20 = s00, s21 = s00, s30 = s00, s31 = s00, r0 = s00, r1 = s00;
    int32_t i, s;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16);
            int32x4_t x0 = qk_four(a0 + i), x1 = qk_four(a1 + i);
            int32x4_t x2 = qk_four(a2 + i), x3 = qk_four(a3 + i);
            r0 = qk_raised(r0, w0);
            r1 = qk_raised(r1, w1);
            s00 = qk_dot4(s00, w0, x0);
            s01 = qk_dot4(s01, w1, x0);
            s10 = qk_dot4(s10, w0, x1);
            s11 = qk_dot4(s11, w1, x1);
            s20 = qk_dot4(s20, w0, x2);
            s21 = qk_dot4(s21, w1, x2);
            s30 = qk_dot4(s30, w0, x3);
            s31 = qk_dot4(s31, w1, x3);
        }
    }
    r0 = vaddq_s32(r0, r0);
    r1 = vaddq_s32(r1, r1);
    vst1q_s32(acc, vaddq_s32(s00, r0));
    vst1q_s32(acc + 4, vaddq_s32(s01, r1));
    vst1q_s32(acc + 32, vaddq_s32(s10, r0));
    vst1q_s32(acc + 36, vaddq_s32(s11, r1));
    vst1q_s32(acc + 64, vaddq_s32(s20, r0));
    vst1q_s32(acc + 68, vaddq_s32(s21, r1));
    vst1q_s32(acc + 96, vaddq_s32(s30, r0));
    vst1q_s32(acc + 100, vaddq_s32(s31, r1));
}

static void qk_gemm_row(const uint8_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    int32x4_t s0 = vdupq_n_s32(0), s1 = s0, r0 = s0, r1 = s0;
    int32_t i, s;
    for (s = 0; s < n; s++)
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16);
            int32x4_t x = qk_four(seg[s] + at + i);
            r0 = qk_raised(r0, w0);
            r1 = qk_raised(r1, w1);
            s0 = qk_dot4(s0, w0, x);
            s1 = qk_dot4(s1, w1, x);
        }
    vst1q_s32(acc, vaddq_s32(s0, vaddq_s32(r0, r0)));
    vst1q_s32(acc + 4, vaddq_s32(s1, vaddq_s32(r1, r1)));
}
#endif
