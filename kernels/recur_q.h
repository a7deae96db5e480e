//! chunk recur_q
//! template R=s8,u8
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
