//! chunk recur_round
/* to[i] = x[i] rounded to 0..255 by scale and zp, less zp. */
static void qk_recur_round(const float *x, int64_t n, float scale, int32_t zp, int16_t *to) {
    int64_t i;
    for (i = 0; i < n; i++) {
        float v = x[i] / scale;
        int32_t q = qk_round_small(v) + zp;
        q = q < 0 || v != v ? 0 : q > 255 ? 255 : q;
        to[i] = (int16_t)(q - zp);
    }
}
