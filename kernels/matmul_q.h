//! kernel matmul_q
//! template X=s8,u8,s16,u16 W=s8,u8,s16,u16,p8 Y=s8,u8,s16,u16,f32,s32 R=exact,single,double,shift
//! acc A = X W
//! expand E = X W
//! skip Y=s32 A=s64
//! skip R!=exact X!=s8,u8
//! skip R!=exact W!=s8,u8,p8
//! skip R!=exact Y!=s8,u8
//! uses requant_row_$a_$y$r if Y!=f32,s32
//! uses dot_$e_$e
//! uses packed if W=p8
// Quantized matrix product for Gemm, MatMul and their batches: y[batch, m, n] (contiguous) from
//   acc = sum over k of (a[i, k] - az) * (b[k, j] - bz[j]) + bias[i, j]
//   y = saturate(round_half_even(acc * mul[j] * 2^shift[j]) + yz)       integer output
//   y = (float)acc * scale[j]                                          float output
//   y = acc                                                            int32 output
// ONNX QLinearMatMul, MatMulInteger, QGemm. Any operand may be transposed or broadcast through its
// strides (elements). The caller sees to it that the products' sums fit the accumulator.
// Scratch: room bytes, for 4 columns of k elements, and for some rows k elements and 4 sums each: the more,
// the less often b is read. With less than for one row, operands are multiplied as they lie: for few rows,
// where gathering them would cost more than the product, or to save the memory.
typedef struct {
    int32_t rank, dim[8]; /* batch dimensions */
    int32_t as[8], bs[8]; /* batch strides */
    int32_t m, n, k, room;
    int32_t am, ak, bk, bn;  /* strides of a[i, k] and b[k, j] */
    int32_t cm, cn;          /* strides of bias */
    int32_t bz_step, m_step; /* of bz; of mul and shift, or scale: 0 per tensor, 1 per column */
    int32_t az, yz, lo, hi;
    int32_t wbits, wsign; /* of a packed b; else not read */
} qk_matmul_q_params;

/* out[i, k] = src[i * si + k * sk] - zero */
static void $NAME_rows(const qk_matmul_q_params *p, const $X *src, int32_t count, $E *out) {
    int32_t i, k;
    for (i = 0; i < count; i++) {
        const $X *s = src + (ptrdiff_t)i * p->am;
        $E *row = out + (ptrdiff_t)i * p->k;
        if (p->ak == 1)
            for (k = 0; k < p->k; k++)
                row[k] = ($E)(s[k] - p->az);
        else
            for (k = 0; k < p->k; k++)
                row[k] = ($E)(s[(ptrdiff_t)k * p->ak] - p->az);
    }
}

/* Columns of b, less their zero points; the first begins at src[at]. */
static void $NAME_cols(const qk_matmul_q_params *p, const $W *src, ptrdiff_t at, int32_t count,
                       const int32_t *bz, $E *out) {
    ptrdiff_t j, k;
    //! if W=p8
    for (j = 0; j < count; j++)
        for (k = 0; k < p->k; k++) {
            ptrdiff_t i = at + k * p->bk + j * p->bn;
            out[j * p->k + k] = ($E)(qk_packed_at(src, i, p->wbits, p->wsign) - bz[j * p->bz_step]);
        }
    //! else
    src += at;
    for (j = 0; p->bk == 1 && j < count; j++) {
        const $W *s = src + j * p->bn;
        $E *col = out + j * p->k;
        int32_t z = bz[j * p->bz_step];
        for (k = 0; k < p->k; k++)
            col[k] = ($E)(s[k] - z);
    }
    for (k = 0; p->bk != 1 && k < p->k; k++) {
        const $W *s = src + k * p->bk;
        for (j = 0; j < count; j++)
            out[j * p->k + k] = ($E)(s[j * p->bn] - bz[j * p->bz_step]);
    }
    //! end
}

/* Sums of one row with `count` columns, of which the first begins at b[at]; sums are `step` apart.
 * Four at a time share the row, those beyond `count` are dropped. */
static void $NAME_row(const qk_matmul_q_params *p, const $X *a, const $W *b, ptrdiff_t at,
                      int32_t count, const int32_t *bz, $A *sum, int32_t step) {
    $A s[4] = {0, 0, 0, 0};
    int32_t z[4], r, k;
    ptrdiff_t o[4];
    for (r = 0; r < 4; r++) {
        o[r] = at + (r < count ? r * (ptrdiff_t)p->bn : 0);
        z[r] = bz[r < count ? r * (ptrdiff_t)p->bz_step : 0];
    }
    for (k = 0; k < p->k; k++) {
        $A v = a[(ptrdiff_t)k * p->ak] - p->az;
        ptrdiff_t i = (ptrdiff_t)k * p->bk;
        //! if W=p8
        s[0] += v * (qk_packed_at(b, o[0] + i, p->wbits, p->wsign) - z[0]);
        s[1] += v * (qk_packed_at(b, o[1] + i, p->wbits, p->wsign) - z[1]);
        s[2] += v * (qk_packed_at(b, o[2] + i, p->wbits, p->wsign) - z[2]);
        s[3] += v * (qk_packed_at(b, o[3] + i, p->wbits, p->wsign) - z[3]);
        //! else
        s[0] += v * (b[o[0] + i] - z[0]);
        s[1] += v * (b[o[1] + i] - z[1]);
        s[2] += v * (b[o[2] + i] - z[2]);
        s[3] += v * (b[o[3] + i] - z[3]);
        //! end
    }
    for (r = 0; r < count; r++)
        sum[(ptrdiff_t)r * step] = s[r];
}

static void $NAME(const qk_matmul_q_params *p, const $X *a, const $W *b, const $A *bias,
                  const int32_t *bz,
                  //! if Y=f32
                  const float *scale,
                  //! end
                  //! if Y!=f32,s32
                  const int32_t *mul, const int32_t *shift,
                  //! end
                  $Y *y, uint8_t *scratch) {
    int32_t index[8] = {0}, batches = 1, batch, d, first, i, j, r;
    ptrdiff_t ia = 0, ib = 0;
    enum { FEW = 3 };
    ptrdiff_t row = (ptrdiff_t)sizeof($E) * p->k, each = row + 4 * (ptrdiff_t)sizeof($A);
    int32_t tile = (int32_t)((p->room - 4 * row) / each);
    const int gathers = scratch != NULL && tile > 0; /* compilers see that NULL is not written to */
    $A few[4 * FEW], *acc = gathers ? ($A *)(void *)scratch : few;
    $E *cols = NULL, *rows = NULL;
    tile = !gathers ? FEW : tile > 4 ? tile / 4 * 4 : tile;
    if (gathers) {
        cols = ($E *)(void *)(acc + 4 * (ptrdiff_t)tile);
        rows = cols + 4 * (ptrdiff_t)p->k;
    }
    for (d = 0; d < p->rank; d++)
        batches *= p->dim[d];
    for (batch = 0; batch < batches; batch++) {
        for (first = 0; first < p->m; first += tile) {
            int32_t count = p->m - first < tile ? p->m - first : tile;
            const $X *ap = a + ia + (ptrdiff_t)first * p->am;
            if (gathers)
                $NAME_rows(p, ap, count, rows);
            for (j = 0; j < p->n; j += 4) {
                int32_t width = p->n - j < 4 ? p->n - j : 4;
                const int32_t *z = bz + (ptrdiff_t)j * p->bz_step;
                ptrdiff_t from = ib + (ptrdiff_t)j * p->bn;
                if (gathers) {
                    $NAME_cols(p, b, from, width, z, cols);
                    qk_dot_$e_$e(rows, count, cols, width, p->k, acc);
                }
                for (i = 0; !gathers && i < count; i++)
                    $NAME_row(p, ap + (ptrdiff_t)i * p->am, b, from, width, z, acc + i, count);
                for (r = 0; r < width; r++) {
                    $Y *out = y + ((ptrdiff_t)batch * p->m + first) * p->n + j + r;
                    $A *sum = acc + (ptrdiff_t)r * count;
                    //! if Y!=s32
                    ptrdiff_t at = (ptrdiff_t)(j + r) * p->m_step;
                    //! end
                    const $A *add =
                        bias ? bias + (ptrdiff_t)first * p->cm + (ptrdiff_t)(j + r) * p->cn : NULL;
                    for (i = 0; bias && i < count; i++)
                        //! if A=s32
                        sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)add[(ptrdiff_t)i * p->cm]);
                    //! else
                    sum[i] += add[(ptrdiff_t)i * p->cm];
                    //! end
                    //! if Y=f32
                    for (i = 0; i < count; i++)
                        out[(ptrdiff_t)i * p->n] = (float)sum[i] * scale[at];
                    //! end
                    //! if Y=s32
                    for (i = 0; i < count; i++)
                        out[(ptrdiff_t)i * p->n] = sum[i];
                    //! end
                    //! if Y!=f32,s32
                    qk_requant_row_$a_$y$r(sum, count, mul[at], shift[at], p->yz, p->lo, p->hi, out,
                                           p->n);
                    //! end
                }
            }
        }
        for (d = p->rank - 1; d >= 0; d--) {
            ia += p->as[d];
            ib += p->bs[d];
            if (++index[d] < p->dim[d])
                break;
            ia -= (ptrdiff_t)p->as[d] * p->dim[d];
            ib -= (ptrdiff_t)p->bs[d] * p->dim[d];
            index[d] = 0;
        }
    }
}
