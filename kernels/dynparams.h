//! kernel dynparams
//! uses round_small
// Scale and zero point of ONNX DynamicQuantizeLinear, both as float, for integers of 0..255:
//   low = min(0, min x), high = max(0, max x), scale = (high - low) / 255, 1 where that is 0
//   zero point = saturate(round_half_even(0 - low / scale))
typedef struct {
    int64_t n;
} qk_dynparams_params;

static void $NAME(const qk_dynparams_params *p, const float *x, float *params) {
    float low = 0.0f, high = 0.0f, scale;
    int64_t i;
    int32_t zp;
    for (i = 0; i < p->n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    scale = high == low ? 1.0f : (high - low) / 255.0f;
    zp = qk_round_small(0.0f - low / scale);
    params[0] = scale;
    params[1] = (float)(zp < 0 ? 0 : zp > 255 ? 255 : zp);
}
