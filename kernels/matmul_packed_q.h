//! kernel matmul_packed_q
//! template X=s8,u8 W=s8,p8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! skip R!=exact Y!=s8,u8
//! uses raise_$x requant_tile_$y$r
//! uses gemm_tile if W=s8
//! uses gemm_tile4 if W=p8
// matmul_q of contiguous rows [m, k] with packed 8-bit or 4-bit weights of zero point 0, which are the same
// for all of them. Weights, tables and what the bias makes up for are those of conv2d_nhwc_q with
// one segment. Scratch: col_bytes, for rows of x of 2 * 4 * steps each; with less than one row, one
// lies on the stack, or where it is long, is taken apart for every 16 columns. With one row at least it works front to back, rows of x
// are read before those of y are written: y may lie over x.
typedef struct {
    int32_t m, k, n, steps, col_bytes;
    int32_t yz, lo, hi;
} qk_matmul_packed_q_params;

/* A row of n as a column, filled up with zeros; nothing is written behind it. */
static void $NAME_row(const $X *x, int32_t n, int32_t all, qk_column *to) {
    int32_t k = n / 16 * 16;
    qk_raise_$x(x, x + n, k, to);
    for (; k < n; k++)
        //! if X=s8
        to[k] = (qk_column)((uint8_t)x[k] ^ 0x80u);
    //! else
    to[k] = (qk_column)x[k];
    //! end
    for (; k < all; k++)
        to[k] = 0;
}

/* Without scratch: sums of one row and 16 columns, 64 of k at a time. */
static void $NAME_parts(const qk_matmul_packed_q_params *p, const $X *x, const $W *w,
                        qk_column *part,
                        //! if W=p8
                        int8_t *unpacked,
                        //! end
                        int32_t *acc) {
    const qk_column *seg = part;
    int32_t sum[16] = {0}, first, k, j;
    //! if X=u8
    if (sizeof(qk_column) == 1 && p->k == 4 * p->steps) { /* they are columns as they stand */
        seg = (const qk_column *)(const void *)x;
        //! if W=p8
        qk_gemm_tile4(&seg, 1, 0, 0, 1, w, p->steps, 1, unpacked, 0, acc);
        //! else
        qk_gemm_tile(&seg, 1, 0, 0, 1, w, p->steps, 1, acc);
        //! end
        return;
    }
    //! end
    //! if W=p8
    for (first = 0; first < p->k; first += 64, w += (ptrdiff_t)64 * 8) {
        //! else
    for (first = 0; first < p->k; first += 64, w += (ptrdiff_t)64 * 16) {
        //! end
        int32_t rest = p->k - first < 64 ? p->k - first : 64;
        k = (rest + 3) / 4;
        $NAME_row(x + first, rest, 4 * k, part);
        //! if W=p8
        qk_gemm_tile4(&seg, 1, 0, 0, 1, w, k, 1, unpacked, 0, acc);
        //! else
        qk_gemm_tile(&seg, 1, 0, 0, 1, w, k, 1, acc);
        //! end
        for (j = 0; j < 16; j++)
            sum[j] = (int32_t)((uint32_t)sum[j] + (uint32_t)acc[j]);
    }
    for (j = 0; j < 16; j++)
        acc[j] = sum[j];
}

static void $NAME(const qk_matmul_packed_q_params *p, const $X *x, const $W *w,
                  const int32_t *bias,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, uint8_t *scratch) {
    QK_LINE int32_t acc[256];
    qk_column part[QK_PART], *col = (qk_column *)(void *)scratch;
    const qk_column *seg;
    int32_t tile, parts, first, rows, i, j;
    ptrdiff_t lda = (ptrdiff_t)4 * p->steps;
    //! if W=p8
    int8_t few[QK_UNPACKED];
    int32_t most = 32 * lda <= QK_UNPACKED ? 32 : 16, unpacked;
    //! else
    int32_t most = 32;
    //! end
    tile = (int32_t)(p->col_bytes / (lda * (ptrdiff_t)sizeof(qk_column)));
    parts = tile == 0 && lda > QK_PART;
    if (tile == 0) {
        tile = 1;
        col = part;
    }
    seg = col;
    for (first = 0; first < p->m; first += tile) {
        int32_t count = p->m - first < tile ? p->m - first : tile, wide = parts ? 16 : most;
        for (i = 0; i < count && !parts; i++, x += p->k)
            $NAME_row(x, p->k, (int32_t)lda, col + i * lda);
        for (j = 0; j < p->n; j += wide) {
            int32_t n = p->n - j < wide ? p->n - j : wide, two = n > 16 ? 2 : 1;
            //! if W=p8
            unpacked = !parts && qk_unpack_blocks(w + j * lda / 2, 16 * two * lda, few);
            //! end
            for (i = 0; i < count; i += rows) {
                $Y *out = y + (ptrdiff_t)(first + i) * p->n + j;
                rows = qk_gemm_height(count - i);
                //! if W=p8
                if (parts)
                    $NAME_parts(p, x, w + j * lda / 2, part, few, acc);
                else
                    qk_gemm_tile4(&seg, 1, i * lda, lda, rows, w + j * lda / 2, p->steps, two, few,
                                  unpacked, acc);
                //! else
                if (parts)
                    $NAME_parts(p, x, w + j * lda, part, acc);
                else
                    qk_gemm_tile(&seg, 1, i * lda, lda, rows, w + j * lda, p->steps, two, acc);
                //! end
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
        if (parts)
            x += p->k;
    }
}
