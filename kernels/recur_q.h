//! chunk recur_q
//! template R=s8,u8
/* to[i] = x[i] rounded to 0..255 by scale and zp, less zp. */
static void qk_recur_q_$r_round(const float *x, int64_t n, float scale, int32_t zp, int16_t *to) {
    int64_t i;
    for (i = 0; i < n; i++) {
        float v = x[i] / scale;
        int32_t q = qk_round_small(v) + zp;
        q = q < 0 || v != v ? 0 : q > 255 ? 255 : q;
        to[i] = (int16_t)(q - zp);
    }
}
/* acc[i] += (x . (r[i] - zp[i])) * (x_scale * scale[i]) for i < rows; the sums stay below 2^31. */
static void qk_recur_q_$r(const int16_t *x, const $R *r, const float *scale, const int32_t *zp,
                          float x_scale, int32_t rows, int32_t len, float *acc) {
    int32_t i, k, all = 0;
    for (k = 0; k < len; k++)
        all += x[k];
    for (i = 0; i < rows; i++, r += len) {
        int32_t sum = 0;
        for (k = 0; k < len; k++)
            sum += x[k] * r[k];
        acc[i] += (float)(sum - zp[i] * all) * (x_scale * scale[i]);
    }
}
