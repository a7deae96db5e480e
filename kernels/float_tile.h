//! chunk float_tile
//! uses floats
/* y[i * ldy + j] = from[i * ldf + j] + sum over l < k of a[i * lda + l] * w[j / 16][l][j % 16], for
 * i < rows and j < n <= 32; the two blocks of weights are `apart` elements apart. `from` may be y.
 * Products are added up 16 at a time, these sums by eights, and then all: one running sum would be
 * several times less exact, and a deep network adds that up. */
#if defined(QK_FLOATS)
#if defined(__AVX512F__)
enum { QK_FLOAT_ROWS = 12, QK_FLOAT_VECTORS = 2 };
#elif defined(__AVX__)
enum { QK_FLOAT_ROWS = 6, QK_FLOAT_VECTORS = 2 };
#elif defined(__aarch64__)
enum { QK_FLOAT_ROWS = 6, QK_FLOAT_VECTORS = 4 };
#else
enum { QK_FLOAT_ROWS = 2, QK_FLOAT_VECTORS = 4 };
#endif

/* Compilers make code of its own for each pair of the constants `rows` and `vectors`, with the sums
 * in registers. */
__attribute__((always_inline)) static inline void
qk_float_sums(const float *a, ptrdiff_t lda, int32_t rows, const float *w, ptrdiff_t apart,
              int32_t k, int32_t vectors, const float *from, ptrdiff_t ldf, float *y,
              ptrdiff_t ldy) {
    qk_floats sum[12][4], some[12][4], all[12][4], v[4], zero = {0};
    int32_t l = 0, end, r, c;
#pragma GCC unroll 12
    for (r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (c = 0; c < vectors; c++)
            some[r][c] = all[r][c] = zero;
    while (l < k) {
#pragma GCC unroll 12
        for (r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (c = 0; c < vectors; c++)
                sum[r][c] = zero;
        for (end = k - l < 16 ? k : l + 16; l < end; l++, a++, w += 16) {
#pragma GCC unroll 4
            for (c = 0; c < vectors; c++)
                v[c] = qk_load_floats(w + c * QK_LANES / 16 * apart + c * QK_LANES % 16);
#pragma GCC unroll 12
            for (r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (c = 0; c < vectors; c++)
                    sum[r][c] += a[r * lda] * v[c];
        }
#pragma GCC unroll 12
        for (r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (c = 0; c < vectors; c++)
                some[r][c] += sum[r][c];
        if (l % 128 == 0 || l == k) {
#pragma GCC unroll 12
            for (r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (c = 0; c < vectors; c++) {
                    all[r][c] += some[r][c];
                    some[r][c] = zero;
                }
        }
    }
#pragma GCC unroll 12
    for (r = 0; r < rows; r++, from += ldf, y += ldy)
#pragma GCC unroll 4
        for (c = 0; c < vectors; c++) {
            ptrdiff_t at = (ptrdiff_t)c * QK_LANES;
            qk_store_floats(y + at, qk_load_floats(from + at) + all[r][c]);
        }
}

/* Returns how many of the rows it made. */
__attribute__((always_inline)) static inline int32_t
qk_float_some(const float *a, ptrdiff_t lda, int32_t rows, const float *w, ptrdiff_t apart,
              int32_t k, int32_t vectors, const float *from, ptrdiff_t ldf, float *y,
              ptrdiff_t ldy) {
    if (rows >= QK_FLOAT_ROWS) {
        qk_float_sums(a, lda, QK_FLOAT_ROWS, w, apart, k, vectors, from, ldf, y, ldy);
        return QK_FLOAT_ROWS;
    }
    if (QK_FLOAT_ROWS > 8 && rows >= 8) {
        qk_float_sums(a, lda, 8, w, apart, k, vectors, from, ldf, y, ldy);
        return 8;
    }
    if (QK_FLOAT_ROWS > 4 && rows >= 4) {
        qk_float_sums(a, lda, 4, w, apart, k, vectors, from, ldf, y, ldy);
        return 4;
    }
    if (QK_FLOAT_ROWS > 2 && rows >= 2) {
        qk_float_sums(a, lda, 2, w, apart, k, vectors, from, ldf, y, ldy);
        return 2;
    }
    qk_float_sums(a, lda, 1, w, apart, k, vectors, from, ldf, y, ldy);
    return 1;
}

static void qk_float_whole(const float *a, ptrdiff_t lda, int32_t rows, const float *w,
                           ptrdiff_t apart, int32_t k, int32_t n, const float *from, ptrdiff_t ldf,
                           float *y, ptrdiff_t ldy) { /* n is 16 or 32 */
    int32_t i, j, made;
    for (j = 0; j < n; j += QK_FLOAT_VECTORS * QK_LANES, w += apart)
        for (i = 0; i < rows; i += made) {
            const float *ai = a + i * lda, *fi = from + i * ldf + j;
            float *yi = y + i * ldy + j;
            if (QK_FLOAT_VECTORS * QK_LANES == 32 && n == 16)
                made = qk_float_some(ai, lda, rows - i, w, apart, k, 1, fi, ldf, yi, ldy);
            else
                made = qk_float_some(ai, lda, rows - i, w, apart, k, QK_FLOAT_VECTORS, fi, ldf, yi,
                                     ldy);
        }
}

static void qk_float_tile(const float *a, ptrdiff_t lda, int32_t rows, const float *w,
                          ptrdiff_t apart, int32_t k, int32_t n, const float *from, ptrdiff_t ldf,
                          float *y, ptrdiff_t ldy) {
    int32_t whole = n / 16 * 16, rest = n - whole, i, j, r, some;
    float sum[192], zero[16] = {0};
    if (whole)
        qk_float_whole(a, lda, rows, w, apart, k, whole, from, ldf, y, ldy);
    for (i = 0; rest && i < rows; i += some) {
        some = rows - i < 12 ? rows - i : 12;
        qk_float_whole(a + i * lda, lda, some, w + whole / 16 * apart, apart, k, 16, zero, 0, sum,
                       16);
        for (r = 0; r < some; r++)
            for (j = 0; j < rest; j++)
                y[(i + r) * ldy + whole + j] = from[(i + r) * ldf + whole + j] + sum[16 * r + j];
    }
}
#else
static void qk_float_tile(const float *a, ptrdiff_t lda, int32_t rows, const float *w,
                          ptrdiff_t apart, int32_t k, int32_t n, const float *from, ptrdiff_t ldf,
                          float *y, ptrdiff_t ldy) {
    int32_t i, j, l, end, r, c;
    for (i = 0; i < rows; i += 2)
        for (j = 0; j < n; j += 4) { /* two rows of four; an odd row stands for two */
            const float *u = a + i * lda, *v = i + 1 < rows ? u + lda : u;
            const float *wj = w + j / 16 * apart + j % 16;
            float some[8] = {0}, all[8] = {0};
            for (l = 0; l < k;) {
                float s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
                for (end = k - l < 16 ? k : l + 16; l < end; l++, wj += 16) {
                    float x = u[l], z = v[l];
                    s0 += x * wj[0];
                    s1 += x * wj[1];
                    s2 += x * wj[2];
                    s3 += x * wj[3];
                    t0 += z * wj[0];
                    t1 += z * wj[1];
                    t2 += z * wj[2];
                    t3 += z * wj[3];
                }
                some[0] += s0, some[1] += s1, some[2] += s2, some[3] += s3;
                some[4] += t0, some[5] += t1, some[6] += t2, some[7] += t3;
                for (c = 0; (l % 128 == 0 || l == k) && c < 8; c++) {
                    all[c] += some[c];
                    some[c] = 0;
                }
            }
            for (r = 0; r < 2 && i + r < rows; r++)
                for (c = 0; c < 4 && j + c < n; c++)
                    y[(i + r) * ldy + j + c] = from[(i + r) * ldf + j + c] + all[4 * r + c];
        }
}
#endif
