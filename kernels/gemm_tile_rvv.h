//! chunk gemm_tile_rvv
//! uses column
/* gemm_tile on the vectors of RISC-V: the columns of a block in four registers or fewer, one k at a
 * time, whose weights are one byte of 32 bits each. */
#if defined(QK_RVV)
enum { QK_ROWS = 4, QK_COLUMNS = 16 };

static inline vint32m4_t qk_block(const int8_t *w) { /* 4 k of 16 columns */
    return __riscv_vreinterpret_v_i8m4_i32m4(__riscv_vle8_v_i8m4(w, 64));
}

static inline vint16m2_t qk_weights(vint32m4_t block, int32_t k) {
    vint32m4_t top = __riscv_vsll_vx_i32m4(block, (size_t)(24 - 8 * k), 16);
    return __riscv_vnsra_wx_i16m2(top, 24, 16);
}

static void qk_gemm_rows(const uint8_t *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    vint32m4_t s0 = __riscv_vmv_v_x_i32m4(0, 16), s1 = s0, s2 = s0, s3 = s0;
    int32_t i, s, l;
    for (s = 0; s < n; s++) {
        const uint8_t *a0 = seg[s] + at, *a1 = a0 + lda, *a2 = a1 + lda, *a3 = a2 + lda;
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            vint32m4_t block = qk_block(w);
            for (l = 0; l < 4; l++) {
                vint16m2_t v = qk_weights(block, l);
                s0 = __riscv_vwmacc_vx_i32m4(s0, a0[i + l], v, 16);
                s1 = __riscv_vwmacc_vx_i32m4(s1, a1[i + l], v, 16);
                s2 = __riscv_vwmacc_vx_i32m4(s2, a2[i + l], v, 16);
                s3 = __riscv_vwmacc_vx_i32m4(s3, a3[i + l], v, 16);
            }
        }
    }
    __riscv_vse32_v_i32m4(acc, s0, 16);
    __riscv_vse32_v_i32m4(acc + 32, s1, 16);
    __riscv_vse32_v_i32m4(acc + 64, s2, 16);
    __riscv_vse32_v_i32m4(acc + 96, s3, 16);
}

static void qk_gemm_row(const uint8_t *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) {
    vint32m4_t sum = __riscv_vmv_v_x_i32m4(0, 16);
    int32_t i, s, l;
    for (s = 0; s < n; s++)
        for (i = 0; i < 4 * k; i += 4, w += 64) {
            vint32m4_t block = qk_block(w);
            for (l = 0; l < 4; l++)
                sum = __riscv_vwmacc_vx_i32m4(sum, seg[s][at + i + l], qk_weights(block, l), 16);
        }
    __riscv_vse32_v_i32m4(acc, sum, 16);
}
#endif
