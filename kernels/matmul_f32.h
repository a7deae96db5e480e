//! kernel matmul_f32
//! also f64
//! uses tile_f32
// y[batch, m, n] (contiguous) = alpha * a[i, k] . b[k, j] + beta * c[i, j]: ONNX Gemm and MatMul
// with batches. Any operand may be transposed or broadcast through its strides (elements). b may lie in
// blocks of 16 columns each, [n / 16][k][16], filled up with zeros. Scratch: room bytes, for 16 columns of
// k elements, and for four rows of them where ak is not 1. With less, columns and rows are packed anew for
// every four rows, 16 of k at a time.
typedef struct {
    int32_t rank, dim[8]; /* batch dimensions */
    int32_t as[8], bs[8]; /* batch strides */
    int32_t m, n, k;
    int32_t am, ak, bk, bn; /* strides of a[i, k] and b[k, j] */
    int32_t blocks;         /* b is in blocks; bk and bn are not read */
    int32_t room;
    int32_t has_c, cm, cn;  /* else c is not read; its strides */
    float alpha, beta;
} qk_matmul_f32_params;

static void $NAME_store(const qk_matmul_f32_params *p, const float *c, int32_t i, int32_t j,
                        float sum, float *y) {
    float v = p->alpha * sum;
    if (p->has_c)
        v += p->beta * c[(ptrdiff_t)i * p->cm + (ptrdiff_t)j * p->cn];
    y[(ptrdiff_t)i * p->n + j] = v;
}

/* One output with 16 partial sums, for a few rows against a transposed b, where packing b would
 * cost more than the product. */
static float $NAME_dot(const float *a, const float *b, int32_t len) {
    float s[16] = {0}, sum = 0.0f;
    int32_t k = 0, l;
    for (; k + 16 <= len; k += 16)
        for (l = 0; l < 16; l++)
            s[l] += a[k + l] * b[k + l];
    for (l = 0; l < 16; l++)
        sum += s[l];
    for (; k < len; k++)
        sum += a[k] * b[k];
    return sum;
}

/* The same for four columns, which lie `apart`: one alone would wait for each of its sums. */
static void $NAME_four(const float *a, const float *b, ptrdiff_t apart, int32_t len, float *out) {
    const float *b1 = b + apart, *b2 = b1 + apart, *b3 = b2 + apart;
    float s0[16] = {0}, s1[16] = {0}, s2[16] = {0}, s3[16] = {0};
    int32_t k = 0, l;
    for (; k + 16 <= len; k += 16)
        for (l = 0; l < 16; l++) {
            s0[l] += a[k + l] * b[k + l];
            s1[l] += a[k + l] * b1[k + l];
            s2[l] += a[k + l] * b2[k + l];
            s3[l] += a[k + l] * b3[k + l];
        }
    out[0] = out[1] = out[2] = out[3] = 0.0f;
    for (l = 0; l < 16; l++) {
        out[0] += s0[l];
        out[1] += s1[l];
        out[2] += s2[l];
        out[3] += s3[l];
    }
    for (; k < len; k++) {
        out[0] += a[k] * b[k];
        out[1] += a[k] * b1[k];
        out[2] += a[k] * b2[k];
        out[3] += a[k] * b3[k];
    }
}

/* Less than 16 columns, which lie side by side, as they are. */
static void $NAME_narrow(const qk_matmul_f32_params *p, const float *a, const float *b,
                         const float *c, int32_t first, int32_t count, float *y) {
    int32_t i, j, k;
    for (i = 0; i < p->m; i++)
        for (j = 0; j < count; j++) {
            float sum = 0.0f;
            for (k = 0; k < p->k; k++)
                sum += a[(ptrdiff_t)i * p->am + (ptrdiff_t)k * p->ak] *
                       b[(ptrdiff_t)k * p->bk + j];
            $NAME_store(p, c, i, first + j, sum, y);
        }
}

/* Four rows by 16 columns, of which `height` and `width` are there, packed on the stack. */
static void $NAME_pieces(const qk_matmul_f32_params *p, const float *a, const float *b,
                         int32_t height, int32_t width, float *out) {
    float cols[256] = {0}, rows[64], lost[64] = {0};
    int32_t first, k, l, r;
    for (l = 0; l < 64; l++)
        out[l] = 0.0f;
    for (first = 0; first < p->k; first += 16) {
        int32_t count = p->k - first < 16 ? p->k - first : 16;
        for (k = 0; k < count; k++) {
            for (l = 0; l < width; l++)
                cols[16 * k + l] = p->blocks
                                       ? b[(ptrdiff_t)(first + k) * 16 + l]
                                       : b[(ptrdiff_t)(first + k) * p->bk + (ptrdiff_t)l * p->bn];
            for (r = 0; r < height; r++)
                rows[16 * r + k] = a[(ptrdiff_t)r * p->am + (ptrdiff_t)(first + k) * p->ak];
        }
        qk_tile_more_f32(cols, 16, rows, 16, height, count, out, lost);
    }
}

static void $NAME_one(const qk_matmul_f32_params *p, const float *a, const float *b, const float *c,
                      float *y, float *cols) {
    int32_t i, j, k, l, r;
    int packs = !p->blocks && (p->bn != 1 || p->m >= 4);
    ptrdiff_t before = packs ? (ptrdiff_t)16 * p->k : 0;
    ptrdiff_t need = before + (p->ak == 1 ? 0 : (ptrdiff_t)4 * p->k);
    int scarce = p->room < need * (ptrdiff_t)sizeof(float);
    float *rows = scarce ? NULL : cols + before;
    if (!p->blocks && p->m < 4 && p->ak == 1 && p->bk == 1) {
        for (j = 0; j + 4 <= p->n; j += 4)
            for (i = 0; i < p->m; i++) {
                float out[4];
                $NAME_four(a + (ptrdiff_t)i * p->am, b + (ptrdiff_t)j * p->bn, p->bn, p->k, out);
                for (l = 0; l < 4; l++)
                    $NAME_store(p, c, i, j + l, out[l], y);
            }
        for (; j < p->n; j++)
            for (i = 0; i < p->m; i++)
                $NAME_store(p, c, i, j,
                            $NAME_dot(a + (ptrdiff_t)i * p->am, b + (ptrdiff_t)j * p->bn, p->k), y);
        return;
    }
    for (j = 0; j < p->n; j += 16) {
        int32_t width = p->n - j < 16 ? p->n - j : 16;
        const float *bp = b + (ptrdiff_t)j * (p->blocks ? p->k : p->bn);
        int packed =
            !p->blocks && (p->bn != 1 || (p->m >= 4 && (width < 16 || p->m >= 16)));
        if (!packed && !p->blocks && width < 16) {
            $NAME_narrow(p, a, bp, c, j, width, y);
            continue;
        }
        for (k = 0; packed && !scarce && k < p->k; k++)
            for (l = 0; l < 16; l++)
                cols[(ptrdiff_t)k * 16 + l] =
                    l < width ? bp[(ptrdiff_t)k * p->bk + (ptrdiff_t)l * p->bn] : 0.0f;
        for (i = 0; i < p->m; i += 4) {
            int32_t height = p->m - i < 4 ? p->m - i : 4;
            const float *ap = a + (ptrdiff_t)i * p->am;
            float out[64];
            for (r = 0; p->ak != 1 && !scarce && r < height; r++)
                for (k = 0; k < p->k; k++)
                    rows[(ptrdiff_t)r * p->k + k] = ap[(ptrdiff_t)r * p->am + (ptrdiff_t)k * p->ak];
            if (scarce && (packed || p->ak != 1))
                $NAME_pieces(p, ap, bp, height, width, out);
            else
                qk_tile_f32(packed ? cols : bp, packed || p->blocks ? 16 : p->bk, p->ak == 1 ? ap : rows,
                        p->ak == 1 ? p->am : p->k, height, p->k, out);
            for (r = 0; r < height; r++)
                for (l = 0; l < width; l++)
                    $NAME_store(p, c, i + r, j + l, out[16 * r + l], y);
        }
    }
}

static void $NAME(const qk_matmul_f32_params *p, const float *a, const float *b, const float *c,
                  float *y, float *cols) {
    int32_t index[8] = {0}, batches = 1, batch, d;
    ptrdiff_t ia = 0, ib = 0;
    for (d = 0; d < p->rank; d++)
        batches *= p->dim[d];
    for (batch = 0; batch < batches; batch++) {
        $NAME_one(p, a + ia, b + ib, c, y + (ptrdiff_t)batch * p->m * p->n, cols);
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
