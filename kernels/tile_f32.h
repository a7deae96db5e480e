//! chunk tile_f32
//! also f64
/* out[j * 16 + l] += sum over k of w[j * ldw + k] * b[k * ldb + l] for l < 16 and j < n <= 4. Rows
 * beyond n are not written. Products are summed 16 at a time, and these sums with the rounding
 * error of each addition carried into the next (Kahan): one running sum would be several times
 * less exact, and a deep network adds that up. */
static void qk_tile_more_f32(const float *b, ptrdiff_t ldb, const float *w, ptrdiff_t ldw,
                             int32_t n, int32_t len, float *out, float *lost) {
    float part[64] = {0};
    int32_t j, k, l, first;
    for (first = 0; first < len; first += 16, b += 16 * ldb, w += 16) {
        int32_t count = len - first < 16 ? len - first : 16;
        if (n == 4) {
            const float *w0 = w, *w1 = w + ldw, *w2 = w1 + ldw, *w3 = w2 + ldw, *row = b;
            float c0[16] = {0}, c1[16] = {0}, c2[16] = {0}, c3[16] = {0};
            for (k = 0; k < count; k++, row += ldb)
                for (l = 0; l < 16; l++) {
                    c0[l] += w0[k] * row[l];
                    c1[l] += w1[k] * row[l];
                    c2[l] += w2[k] * row[l];
                    c3[l] += w3[k] * row[l];
                }
            for (l = 0; l < 16; l++) {
                part[l] = c0[l];
                part[16 + l] = c1[l];
                part[32 + l] = c2[l];
                part[48 + l] = c3[l];
            }
        } else {
            for (j = 0; j < n; j++) {
                const float *wj = w + j * ldw, *row = b;
                float c[16] = {0};
                for (k = 0; k < count; k++, row += ldb)
                    for (l = 0; l < 16; l++)
                        c[l] += wj[k] * row[l];
                for (l = 0; l < 16; l++)
                    part[16 * j + l] = c[l];
            }
        }
        for (l = 0; l < 16 * n; l++) {
            float add = part[l] - lost[l], sum = out[l] + add, off = (sum - out[l]) - add;
            lost[l] = off != off ? 0.0f : off; /* infinities have no rounding error */
            out[l] = sum;
        }
    }
}

static void qk_tile_f32(const float *b, ptrdiff_t ldb, const float *w, ptrdiff_t ldw, int32_t n,
                        int32_t len, float *out) {
    float lost[64] = {0};
    int32_t l;
    for (l = 0; l < 16 * n; l++)
        out[l] = 0.0f;
    qk_tile_more_f32(b, ldb, w, ldw, n, len, out, lost);
}
