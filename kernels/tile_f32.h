//! chunk tile_f32
/* out[j * 16 + l] = sum over k of w[j * ldw + k] * b[k * ldb + l] for l < 16 and j < n <= 4, each
 * sum in the order of k. Rows beyond n are zero. */
static void qk_tile_f32(const float *b, ptrdiff_t ldb, const float *w, ptrdiff_t ldw, int32_t n,
                        int32_t len, float *out) {
    float c0[16] = {0}, c1[16] = {0}, c2[16] = {0}, c3[16] = {0};
    int32_t j, k, l;
    if (n == 4) {
        const float *w0 = w, *w1 = w + ldw, *w2 = w1 + ldw, *w3 = w2 + ldw;
        for (k = 0; k < len; k++, b += ldb)
            for (l = 0; l < 16; l++) {
                c0[l] += w0[k] * b[l];
                c1[l] += w1[k] * b[l];
                c2[l] += w2[k] * b[l];
                c3[l] += w3[k] * b[l];
            }
        for (l = 0; l < 16; l++) {
            out[l] = c0[l];
            out[16 + l] = c1[l];
            out[32 + l] = c2[l];
            out[48 + l] = c3[l];
        }
        return;
    }
    for (j = 0; j < n; j++, w += ldw) {
        const float *row = b;
        for (l = 0; l < 16; l++)
            c0[l] = 0.0f;
        for (k = 0; k < len; k++, row += ldb)
            for (l = 0; l < 16; l++)
                c0[l] += w[k] * row[l];
        for (l = 0; l < 16; l++)
            out[16 * j + l] = c0[l];
    }
}
