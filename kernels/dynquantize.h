//! kernel dynquantize
//! uses round_small dynscale
// ONNX DynamicQuantizeLinear: scale and zero point of the numbers x, and their integers y:
// y = saturate(round_half_even(x / scale) + zp) into 0..255; NaN gives 0.
typedef struct {
    int64_t n;
} qk_dynquantize_params;

static void $NAME(const qk_dynquantize_params *p, const float *x, uint8_t *y, float *scale,
                  uint8_t *zp) {
    int32_t zero, q;
    int64_t i;
    qk_dynscale(x, p->n, scale, &zero);
    *zp = (uint8_t)zero;
    for (i = 0; i < p->n; i++) {
        float v = x[i] / *scale;
        q = qk_round_small(v) + zero;
        q = q < 0 ? 0 : q > 255 ? 255 : q;
        y[i] = (uint8_t)(v == v ? q : 0);
    }
}
