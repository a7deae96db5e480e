//! chunk recur_f32
/* acc[i] += h . r[i] for i < rows: the part of the gates that the state before gives. 16 partial
 * sums a product. */
static void qk_recur_f32(const float *h, const float *r, int32_t rows, int32_t len, float *acc) {
    int32_t i, k, l;
    for (i = 0; i < rows; i++, r += len) {
        float s[16] = {0}, sum = 0.0f;
        for (k = 0; k + 16 <= len; k += 16)
            for (l = 0; l < 16; l++)
                s[l] += h[k + l] * r[k + l];
        for (l = 0; l < 16; l++)
            sum += s[l];
        for (; k < len; k++)
            sum += h[k] * r[k];
        acc[i] += sum;
    }
}
