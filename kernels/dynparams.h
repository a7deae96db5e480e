//! kernel dynparams
//! uses round_small dynscale
// Scale and zero point of ONNX DynamicQuantizeLinear, both as float, for integers of 0..255.
typedef struct {
    int64_t n;
} qk_dynparams_params;

static void $NAME(const qk_dynparams_params *p, const float *x, float *params) {
    int32_t zp;
    qk_dynscale(x, p->n, &params[0], &zp);
    params[1] = (float)zp;
}
