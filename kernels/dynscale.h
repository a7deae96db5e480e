//! chunk dynscale
/* Scale and zero point of ONNX DynamicQuantizeLinear for integers of 0..255:
 *   low = min(0, min x), high = max(0, max x), scale = (high - low) / 255, 1 where that is 0
 *   zero point = saturate(round_half_even(0 - low / scale)) */
static void qk_dynscale(const float *x, int64_t n, float *scale, int32_t *zp) {
    float low = 0.0f, high = 0.0f;
    int64_t i;
    int32_t q;
    for (i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *scale = high == low ? 1.0f : (high - low) / 255.0f;
    q = qk_round_small(0.0f - low / *scale);
    *zp = q < 0 ? 0 : q > 255 ? 255 : q;
}
