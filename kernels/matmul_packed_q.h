//! kernel matmul_packed_q
//! template X=s8,u8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses gemm_tile requant_tile_$y$r
// matmul_q of contiguous rows [m, k] with packed 8-bit weights of zero point 0, which are the same
// for all of them. Weights, tables and what the bias makes up for are those of conv2d_nhwc_q with
// one segment. Scratch: col_bytes, at least 2 * 4 * steps.
typedef struct {
    int32_t m, k, n, steps, col_bytes;
    int32_t yz, lo, hi;
} qk_matmul_packed_q_params;

static void $NAME(const qk_matmul_packed_q_params *p, const $X *x, const int8_t *w,
                  const int32_t *bias,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, uint8_t *scratch) {
    int32_t tile, first, i, j, k, acc[256];
    ptrdiff_t lda = (ptrdiff_t)4 * p->steps;
    qk_column *col = (qk_column *)(void *)scratch;
    const qk_column *seg = col;
    tile = (int32_t)(p->col_bytes / (lda * (ptrdiff_t)sizeof(qk_column)));
    for (first = 0; first < p->m; first += tile) {
        int32_t count = p->m - first < tile ? p->m - first : tile;
        for (i = 0; i < count; i++, x += p->k) {
            for (k = 0; k < p->k; k++)
                //! if X=s8
                col[i * lda + k] = (qk_column)((uint8_t)x[k] ^ 0x80u);
            //! else
            col[i * lda + k] = (qk_column)x[k];
            //! end
            for (; k < 4 * p->steps; k++)
                col[i * lda + k] = 0;
        }
        for (j = 0; j < p->n; j += 32) {
            int32_t n = p->n - j < 32 ? p->n - j : 32, two = n > 16 ? 2 : 1;
            for (i = 0; i < count; i += 8) {
                int32_t rows = count - i < 8 ? count - i : 8;
                $Y *out = y + (ptrdiff_t)(first + i) * p->n + j;
                qk_gemm_tile(&seg, 1, i * lda, lda, rows, w + j * lda, p->steps, two, acc);
                //! if Y=f32
                qk_requant_tile_$y(acc, rows, n, bias + j, scale + j, out, p->n);
                //! end
                //! if Y=s32
                qk_requant_tile_$y(acc, rows, n, bias + j, out, p->n);
                //! end
                //! if Y!=f32,s32
                qk_requant_tile_$y$r(acc, rows, n, bias + j, mul + j, shift + j, p->yz, p->lo, p->hi,
                                   out, p->n);
                //! end
            }
        }
    }
}
