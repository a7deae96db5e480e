//! kernel round_float
// y = x rounded to a floating-point type of fewer bits, to nearest and of two the even one: `mantissa`
// bits behind the point, the first binade begins at 2^least, numbers beyond `most` become +-beyond
// (infinity, most, or NaN); without negative zero where `unsigned_zero`. y may be x.
typedef struct {
    int64_t n;
    int32_t mantissa, least, unsigned_zero;
    float most, beyond;
} qk_round_float_params;

static void $NAME(const qk_round_float_params *p, const float *x, float *y) {
    int64_t n = p->n, i;
    int32_t drop = 23 - p->mantissa, first = p->least + 127;
    for (i = 0; i < n; i++) {
        uint32_t bits, sign, part, exponent, half;
        int32_t s;
        float v;
        memcpy(&bits, &x[i], sizeof bits);
        if ((bits & 0x7fffffff) > 0x7f800000) { /* NaN */
            y[i] = x[i];
            continue;
        }
        sign = bits & 0x80000000;
        exponent = bits >> 23 & 255;
        part = (bits & 0x7fffff) | (exponent ? 0x800000u : 0);
        exponent = exponent ? exponent : 1;
        s = drop + (first > (int32_t)exponent ? first - (int32_t)exponent : 0);
        s = s > 25 ? 25 : s;
        half = s ? (uint32_t)1 << (s - 1) : 0;
        part = s ? (part + half - 1 + (part >> s & 1)) >> s << s : part;
        bits = part ? ((exponent - 1) << 23) + part : 0;
        memcpy(&v, &bits, sizeof v);
        v = v > p->most ? p->beyond : v;
        memcpy(&bits, &v, sizeof bits);
        bits |= part || !p->unsigned_zero ? sign : 0;
        memcpy(&y[i], &bits, sizeof bits);
    }
}
