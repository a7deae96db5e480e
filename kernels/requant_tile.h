//! chunk requant_tile
//! template Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses simd
//! uses requant_each_$y$r if Y!=f32,s32
//! uses requant_tile_avx512_$y requant_tile_avx2_$y if Y=s8,u8 R=exact
//! uses requant_tile_sse2_$y requant_tile_neon_$y if Y=s8,u8 R=exact
//! uses requant_fixed_avx512_$y$r requant_fixed_avx2_$y$r if R!=exact
//! uses requant_fixed_sse2_$y$r requant_fixed_neon_$y$r if R!=exact
/* A tile of sums to results, rows of 32 sums to rows of n <= 32 results. */
//! if Y=f32
/* y[i * step + j] = (float)(acc[i * 32 + j] + bias[j]) * scale[j], for i < rows, j < n <= 32. */
static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const float *scale, float *y, ptrdiff_t step) {
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j++)
            y[j] = (float)(int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]) * scale[j];
}
//! end
//! if Y=s32
/* y[i * step + j] = acc[i * 32 + j] + bias[j], for i < rows, j < n <= 32. */
static void qk_requant_tile_$y(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               int32_t *y, ptrdiff_t step) {
    int32_t i, j;
    for (i = 0; i < rows; i++, acc += 32, y += step)
        for (j = 0; j < n; j++)
            y[j] = (int32_t)((uint32_t)acc[j] + (uint32_t)bias[j]);
}
//! end
//! if Y!=f32,s32
/* As qk_requant_each$r, which see. Vectors may read tables and sums up to a multiple of 16. */
//! if Y=s8,u8 R=exact
#if !defined(QK_FLOAT_TILE)
//! end
//! if R!=exact
#if !defined(QK_FIXED_TILE)
//! end
static void qk_requant_tile_$y$r(const int32_t *acc, int32_t rows, int32_t n, const int32_t *bias,
                               const int32_t *mul, const int32_t *shift, int32_t yz, int32_t lo,
                               int32_t hi, $Y *y, ptrdiff_t step) {
    qk_requant_each_$y$r(acc, rows, n, bias, mul, shift, yz, lo, hi, y, step);
}
//! if Y=s8,u8
#endif
//! end
//! end
