//! chunk recur_sum
//! template X=s8,u8,s16,u16
/* x . w. Chunks of products are summed up in 32 bits: 2^16 of 8 bits by 8, 2^8 of 16 by 8 stay below 2^31. */
static int64_t qk_recur_sum_$x(const $X *x, const int8_t *w, int32_t len) {
//! if X=s8,u8
    const int32_t chunk = 65536;
//! else
    const int32_t chunk = 256;
//! end
    int64_t sum = 0;
    int32_t k = 0;
    while (k < len) {
        int32_t end = len - k < chunk ? len : k + chunk, part = 0;
        for (; k < end; k++)
            part += (int32_t)x[k] * w[k];
        sum += part;
    }
    return sum;
}
