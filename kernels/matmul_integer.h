//! kernel matmul_integer
//! template X=s8,u8 W=s8,u8 E=s16,s32
//! widen A = E
//! uses dot_$e_$e
// ONNX MatMulInteger: y[batch, m, n] = sum over k of (a[i, k] - az[i]) * (b[k, j] - bz[j]), which
// wraps like int32. az and bz may be NULL (0), are read through their strides, and may differ from
// one matrix of the batch to the next. With E=s16 k is at most 2^15.
// Scratch: rows holds tile * k elements, cols 4 * k, acc 4 * tile.
typedef struct {
    int32_t rank, dim[8];                 /* batch dimensions */
    int32_t as[8], bs[8], azs[8], bzs[8]; /* their strides */
    int32_t m, n, k, tile;
    int32_t am, bk, bn; /* strides of a[i] and b[k, j]; a[i, k] lies beside a[i, k + 1] */
    int32_t azm, bzn;   /* strides of az[i] and bz[j] */
} qk_matmul_integer_params;

static void $NAME(const qk_matmul_integer_params *p, const $X *a, const $W *b, const $X *az,
                  const $W *bz, int32_t *y, $E *rows, $E *cols, $A *acc) {
    int32_t index[8] = {0}, batches = 1, batch, d, first, i, j, k, r;
    ptrdiff_t ia = 0, ib = 0, iaz = 0, ibz = 0;
    for (d = 0; d < p->rank; d++)
        batches *= p->dim[d];
    for (batch = 0; batch < batches; batch++) {
        for (first = 0; first < p->m; first += p->tile) {
            int32_t count = p->m - first < p->tile ? p->m - first : p->tile;
            for (i = 0; i < count; i++) {
                const $X *row = a + ia + (ptrdiff_t)(first + i) * p->am;
                int32_t zero = az ? az[iaz + (ptrdiff_t)(first + i) * p->azm] : 0;
                for (k = 0; k < p->k; k++)
                    rows[(ptrdiff_t)i * p->k + k] = ($E)(row[k] - zero);
            }
            for (j = 0; j < p->n; j += 4) {
                int32_t width = p->n - j < 4 ? p->n - j : 4;
                for (r = 0; r < width; r++) {
                    const $W *column = b + ib + (ptrdiff_t)(j + r) * p->bn;
                    int32_t zero = bz ? bz[ibz + (ptrdiff_t)(j + r) * p->bzn] : 0;
                    for (k = 0; k < p->k; k++)
                        cols[(ptrdiff_t)r * p->k + k] = ($E)(column[(ptrdiff_t)k * p->bk] - zero);
                }
                qk_dot_$e_$e(rows, count, cols, width, p->k, acc);
                for (r = 0; r < width; r++)
                    for (i = 0; i < count; i++)
                        y[((ptrdiff_t)batch * p->m + first + i) * p->n + j + r] =
                            (int32_t)(uint32_t)acc[(ptrdiff_t)r * count + i];
            }
        }
        for (d = p->rank - 1; d >= 0; d--) {
            ia += p->as[d];
            ib += p->bs[d];
            iaz += p->azs[d];
            ibz += p->bzs[d];
            if (++index[d] < p->dim[d])
                break;
            ia -= (ptrdiff_t)p->as[d] * p->dim[d];
            ib -= (ptrdiff_t)p->bs[d] * p->dim[d];
            iaz -= (ptrdiff_t)p->azs[d] * p->dim[d];
            ibz -= (ptrdiff_t)p->bzs[d] * p->dim[d];
            index[d] = 0;
        }
    }
}
