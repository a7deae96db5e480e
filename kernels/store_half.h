//! kernel store_half
// y = the bits of x, numbers of float16 (`mantissa` 10) or bfloat16 (7); NaN is the type's usual one.
typedef struct {
    int64_t n;
    int32_t mantissa;
} qk_store_half_params;

static void $NAME(const qk_store_half_params *p, const float *x, uint16_t *y) {
    int64_t n = p->n, i;
    for (i = 0; i < n; i++) {
        uint32_t bits, rest, half;
        memcpy(&bits, &x[i], sizeof bits);
        rest = bits & 0x7fffffff;
        half = rest >> (23 - p->mantissa);
        if (rest > 0x7f800000)
            half = p->mantissa == 10 ? 0x7e00 : 0x7fc0;
        else if (p->mantissa == 10 && rest == 0x7f800000)
            half = 0x7c00;
        else if (p->mantissa == 10 && rest < 113u << 23) /* subnormal */
            half = (uint32_t)((x[i] < 0 ? -x[i] : x[i]) * 16777216.0f);
        else if (p->mantissa == 10)
            half -= 112u << 10;
        y[i] = (uint16_t)((bits >> 16 & 0x8000) | half);
    }
}
