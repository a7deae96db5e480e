//! kernel dynquant
//! uses round_small
// y = saturate(round_half_even(x / params[0]) + params[1]) into 0..255; NaN gives 0.
typedef struct {
    int64_t n;
} qk_dynquant_params;

static void $NAME(const qk_dynquant_params *p, const float *x, const float *params, uint8_t *y) {
    float scale = params[0];
    int32_t zp = (int32_t)params[1];
    int64_t i;
    for (i = 0; i < p->n; i++) {
        float v = x[i] / scale;
        int32_t q = qk_round_small(v) + zp;
        q = q < 0 ? 0 : q > 255 ? 255 : q;
        y[i] = (uint8_t)(v == v ? q : 0);
    }
}
