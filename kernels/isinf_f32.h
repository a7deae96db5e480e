//! kernel isinf_f32
//! also f64
// y = 1 where x is NaN and `nan`, inf and `positive`, or -inf and `negative`, else 0 (ONNX IsNaN, IsInf).
typedef struct {
    int64_t n;
    int32_t nan, positive, negative;
} qk_isinf_f32_params;

static void $NAME(const qk_isinf_f32_params *p, const float *x, uint8_t *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        float v = x[i];
        int32_t infinite = v == v && v - v != v - v;
        y[i] = (uint8_t)(v != v ? p->nan : infinite ? (v > 0.0f ? p->positive : p->negative) : 0);
    }
}
