//! chunk gemm_tile
//! uses column gemm_tile_vnni gemm_tile_avx2 gemm_tile_sse2
//! uses gemm_tile_dotprod gemm_tile_neon gemm_tile_mve gemm_tile_dsp gemm_tile_rvv
/* acc[i * 32 + j] = sum over the segments a[0..n) and k of a[s][at + i * lda + k] *
 * w[s][k / 4][j][k % 4], for i < rows <= 8 and j < 16 * blocks, blocks <= 2. Weights lie in blocks
 * of 16 columns, [n][k / 4][16][4] each; k counts steps of 4. Sums wrap like int32. The processor's
 * micro-kernels make QK_ROWS x QK_COLUMNS of them, or one row; acc has 8 rows, and those behind
 * `rows` may be written. */
#if defined(QK_PORTABLE)
enum { QK_ROWS = 2, QK_COLUMNS = 2 };

static void qk_gemm_rows(const qk_column *const *seg, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         const int8_t *w, int32_t k, int32_t *acc) {
    int32_t i, s, s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (s = 0; s < n; s++) {
        const qk_column *a0 = seg[s] + at, *a1 = a0 + lda;
        for (i = 0; i < k; i++, a0 += 4, a1 += 4, w += 64) {
            s00 += a0[0] * w[0] + a0[1] * w[1] + a0[2] * w[2] + a0[3] * w[3];
            s01 += a0[0] * w[4] + a0[1] * w[5] + a0[2] * w[6] + a0[3] * w[7];
            s10 += a1[0] * w[0] + a1[1] * w[1] + a1[2] * w[2] + a1[3] * w[3];
            s11 += a1[0] * w[4] + a1[1] * w[5] + a1[2] * w[6] + a1[3] * w[7];
        }
    }
    acc[0] = s00;
    acc[1] = s01;
    acc[32] = s10;
    acc[33] = s11;
}
#endif
#if defined(QK_PORTABLE) || defined(QK_DSP)
static void qk_gemm_row(const qk_column *const *seg, int32_t n, ptrdiff_t at, const int8_t *w,
                        int32_t k, int32_t *acc) { /* an odd row stands for two */
    qk_gemm_rows(seg, n, at, 0, w, k, acc);
}
#endif

/* How many of the rows that are left the next tile takes. */
static int32_t qk_gemm_height(int32_t left) {
#if defined(QK_VNNI)
    int32_t tiles = (left + 7) / 8; /* as equal as can be */
    return (left + tiles - 1) / tiles;
#else
    return left < 8 ? left : 8;
#endif
}

#if !defined(QK_VNNI)
static void qk_gemm_tile(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                         int32_t rows, const int8_t *w, int32_t k, int32_t blocks, int32_t *acc) {
    int32_t i, j;
    for (j = 0; j < 16 * blocks; j += QK_COLUMNS) {
        const int8_t *v = w + (ptrdiff_t)64 * k * n * (j / 16) + (ptrdiff_t)4 * (j % 16);
        for (i = 0; i + QK_ROWS <= rows; i += QK_ROWS)
            qk_gemm_rows(a, n, at + i * lda, lda, v, k, acc + (ptrdiff_t)32 * i + j);
        for (; i < rows; i++)
            qk_gemm_row(a, n, at + i * lda, v, k, acc + (ptrdiff_t)32 * i + j);
    }
}
#endif
