//! kernel load_half
// y = the float16 (`mantissa` 10) or bfloat16 (7) of these bits.
typedef struct {
    int64_t n;
    int32_t mantissa;
} qk_load_half_params;

static void $NAME(const qk_load_half_params *p, const uint16_t *x, float *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        uint32_t sign = (uint32_t)(x[i] & 0x8000) << 16, rest = x[i] & 0x7fffu;
        uint32_t bits = rest << (23 - p->mantissa);
        if (p->mantissa == 10 && rest < 0x400) { /* subnormal */
            float v = (float)(int32_t)rest * 5.9604645e-8f;
            memcpy(&bits, &v, sizeof bits);
        } else if (p->mantissa == 10) {
            bits += (rest < 0x7c00 ? 112u : 224u) << 23;
        }
        bits |= sign;
        memcpy(&y[i], &bits, sizeof bits);
    }
}
