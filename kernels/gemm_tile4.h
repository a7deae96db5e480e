//! chunk gemm_tile4
//! uses gemm_tile unpack4
/* gemm_tile with weights of 4 bits, whose eights are those of unpack4. They are unpacked into
 * `part`, QK_UNPACKED bytes: all of the blocks at once where they fit (qk_unpack_blocks says so),
 * for any number of tiles; else steps of one block, for each tile anew. */
static int32_t qk_unpack_blocks(const uint8_t *w, ptrdiff_t bytes, int8_t *part) {
    if (bytes > QK_UNPACKED)
        return 0;
    qk_unpack4(w, bytes, part);
    return 1;
}

static void qk_gemm_tile4(const qk_column *const *a, int32_t n, ptrdiff_t at, ptrdiff_t lda,
                          int32_t rows, const uint8_t *w, int32_t k, int32_t blocks, int8_t *part,
                          int32_t unpacked, int32_t *acc) {
    int32_t s, l, i, j, some;
    if (unpacked) {
        qk_gemm_tile(a, n, at, lda, rows, part, k, blocks, acc);
        return;
    }
    for (i = 0; i < rows; i++)
        for (j = 0; j < 16; j++)
            acc[32 * i + j] = 0;
    for (s = 0; s < n; s++)
        for (l = 0; l < k; l += some, w += (ptrdiff_t)32 * some) {
            some = k - l < QK_UNPACKED / 64 ? k - l : QK_UNPACKED / 64;
            qk_unpack4(w, (ptrdiff_t)64 * some, part);
            qk_gemm_tile(a + s, 1, at + (ptrdiff_t)4 * l, lda, rows, part, some, 1, acc + 16);
            for (i = 0; i < rows; i++)
                for (j = 0; j < 16; j++)
                    acc[32 * i + j] =
                        (int32_t)((uint32_t)acc[32 * i + j] + (uint32_t)acc[32 * i + 16 + j]);
        }
}
