#include "ir/minifloat.h"

#include <assert.h>
#include <math.h>

/* What the all-ones exponent and the negative zero stand for. */
typedef enum Specials {
    IEEE,   /* infinities and NaNs */
    FN,     /* no infinity; NaN is all ones */
    FNUZ,   /* no infinity, no negative zero: its pattern is the NaN */
    NONE,   /* finite numbers only */
    POWERS, /* no sign, no mantissa, no zero; NaN is all ones */
} Specials;

typedef struct Format {
    int exponent, mantissa, bias;
    Specials specials;
} Format;

static const Format formats[] = {
    [ELEM_FLOAT] = {8, 23, 127, IEEE},       [ELEM_DOUBLE] = {11, 52, 1023, IEEE},
    [ELEM_FLOAT16] = {5, 10, 15, IEEE},      [ELEM_BFLOAT16] = {8, 7, 127, IEEE},
    [ELEM_FLOAT8E4M3FN] = {4, 3, 7, FN},     [ELEM_FLOAT8E4M3FNUZ] = {4, 3, 8, FNUZ},
    [ELEM_FLOAT8E5M2] = {5, 2, 15, IEEE},    [ELEM_FLOAT8E5M2FNUZ] = {5, 2, 16, FNUZ},
    [ELEM_FLOAT8E8M0] = {8, 0, 127, POWERS}, [ELEM_FLOAT4E2M1] = {2, 1, 1, NONE},
    [ELEM_FLOAT6E2M3] = {2, 3, 1, NONE},     [ELEM_FLOAT6E3M2] = {3, 2, 3, NONE},
};

static Format format_of(ElemType e) {
    assert(e < sizeof formats / sizeof *formats && formats[e].exponent);
    return formats[e];
}

static uint64_t low_bits(int n) {
    return (1ull << n) - 1;
}

static uint64_t default_nan(Format f) {
    switch (f.specials) {
    case IEEE: return low_bits(f.exponent) << f.mantissa | 1ull << (f.mantissa - 1);
    case FN: return low_bits(f.exponent + f.mantissa);
    case FNUZ: return 1ull << (f.exponent + f.mantissa);
    case POWERS: return low_bits(f.exponent);
    case NONE: break;
    }
    return 0;
}

/* The pattern of the largest finite number. */
static uint64_t largest(Format f) {
    uint64_t all = low_bits(f.exponent + f.mantissa);
    switch (f.specials) {
    case IEEE: return (low_bits(f.exponent) << f.mantissa) - 1;
    case FN:
    case POWERS: return all - 1;
    default: return all;
    }
}

bool float_is_nan(ElemType e, uint64_t bits) {
    Format f = format_of(e);
    uint64_t rest = bits & low_bits(f.exponent + f.mantissa);
    switch (f.specials) {
    case IEEE: return rest > low_bits(f.exponent) << f.mantissa;
    case FN: return rest == default_nan(f);
    case FNUZ:
    case POWERS: return bits == default_nan(f);
    case NONE: break;
    }
    return false;
}

double float_decode(ElemType e, uint64_t bits) {
    Format f = format_of(e);
    if (float_is_nan(e, bits))
        return (double)NAN;
    if (f.specials == POWERS)
        return ldexp(1, (int)bits - f.bias);
    bool negative = bits >> (f.exponent + f.mantissa) & 1;
    uint64_t rest = bits & low_bits(f.exponent + f.mantissa);
    int exponent = (int)(rest >> f.mantissa);
    uint64_t mantissa = rest & low_bits(f.mantissa);
    double v;
    if (f.specials == IEEE && rest > largest(f))
        v = (double)INFINITY;
    else if (exponent == 0)
        v = ldexp((double)mantissa, 1 - f.bias - f.mantissa);
    else
        v = ldexp((double)(mantissa | 1ull << f.mantissa), exponent - f.bias - f.mantissa);
    return negative ? -v : v;
}

bool float_grid(ElemType e, FloatGrid *out) {
    Format f = format_of(e);
    *out = (FloatGrid){.mantissa = f.mantissa,
                       .least = 1 - f.bias,
                       .most = (float)float_decode(e, largest(f)),
                       .infinity = f.specials == IEEE,
                       .nan = f.specials != NONE,
                       .negative_zero = f.specials != FNUZ};
    return f.specials != POWERS;
}

/* A finite magnitude: rounded to the spacing of its binade. A carry into the next binade needs no
 * care, as the patterns are in the order of the numbers. */
static uint64_t encode_magnitude(Format f, double v) {
    int exponent;
    frexp(v, &exponent); /* v = 0.xxx * 2^exponent */
    int stored = exponent - 1 + f.bias;
    if (v == 0 || stored < 1)
        stored = 1; /* subnormal numbers share the spacing of the first binade */
    double steps = nearbyint(ldexp(v, f.mantissa - (stored - f.bias)));
    return (uint64_t)steps + ((uint64_t)(stored - 1) << f.mantissa);
}

/* Powers of two only: nearest, ties to the even exponent. */
static bool encode_power(Format f, double v, uint64_t *bits) {
    if (!(v > 0) || isinf(v))
        return false;
    int exponent;
    double part = frexp(v, &exponent) * 2; /* in [1, 2) */
    int stored = exponent - 1 + f.bias;
    stored += part > 1.5 || (part == 1.5 && (stored & 1));
    *bits = (uint64_t)(stored < 0 ? 0 : stored);
    return stored <= (int)largest(f);
}

bool float_encode(ElemType e, double v, uint64_t *bits) {
    Format f = format_of(e);
    if (isnan(v)) {
        *bits = default_nan(f);
        return f.specials != NONE;
    }
    if (f.specials == POWERS)
        return encode_power(f, v, bits);
    uint64_t sign = signbit(v) ? 1ull << (f.exponent + f.mantissa) : 0;
    if (isinf(v)) {
        *bits = sign | low_bits(f.exponent) << f.mantissa;
        return f.specials == IEEE;
    }
    if (e == ELEM_DOUBLE) {
        memcpy(bits, &v, 8);
        return true;
    }
    uint64_t magnitude = encode_magnitude(f, fabs(v));
    if (f.specials == FNUZ && magnitude == 0)
        sign = 0;
    *bits = sign | magnitude;
    return magnitude <= largest(f);
}
