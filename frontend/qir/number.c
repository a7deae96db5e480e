#include "frontend/qir/number.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ir/minifloat.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

int hex_digit(char c) {
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_word(char c) {
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

/* An optional sign and digits; huge exponents saturate. */
static const char *scan_exponent(const char *p, int *out) {
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return NULL;
    int v = 0;
    for (; is_digit(*p); p++)
        v = v < 100000 ? v * 10 + (*p - '0') : v;
    *out = negative ? -v : v;
    return p;
}

/* 0x1234, or 0x1.8p-7. */
static const char *scan_hex(const char *p, Number *out) {
    const char *digits = p;
    for (; hex_digit(*p) >= 0; p++) {
        out->inexact |= out->magnitude >> 60 != 0;
        out->magnitude = out->magnitude << 4 | (uint64_t)hex_digit(*p);
    }
    if (p == digits)
        return NULL;
    bool point = *p == '.';
    if (point)
        for (p++; hex_digit(*p) >= 0; p++)
            ;
    if (*p == 'p' || *p == 'P') {
        out->kind = NUM_BINARY;
        return scan_exponent(p + 1, &out->exponent);
    }
    return point ? NULL : p;
}

static void take_digit(Number *out, char c, int places) {
    if (out->magnitude <= (UINT64_MAX - 9) / 10 && !out->inexact) {
        out->magnitude = out->magnitude * 10 + (uint64_t)(c - '0');
        out->exponent -= places;
    } else {
        out->inexact = true;
    }
}

/* 18446744073709551615 is the one region where the quick bound above is too careful. */
static void take_last_digit(Number *out, char c) {
    uint64_t digit = (uint64_t)(c - '0');
    if (!out->inexact && out->magnitude <= (UINT64_MAX - digit) / 10)
        out->magnitude = out->magnitude * 10 + digit;
    else
        out->inexact = true;
}

static const char *scan_decimal(const char *p, Number *out) {
    for (; is_digit(*p); p++)
        take_last_digit(out, *p);
    if (*p == '.') {
        out->kind = NUM_DECIMAL;
        for (p++; is_digit(*p); p++)
            take_digit(out, *p, 1);
    }
    if (*p == 'e' || *p == 'E') {
        int e;
        out->kind = NUM_DECIMAL;
        p = scan_exponent(p + 1, &e);
        out->exponent += e;
    }
    return p;
}

static const char *scan_nan(const char *p, Number *out) {
    out->kind = NUM_NAN;
    if (p[0] != '(')
        return p;
    if (p[1] != '0' || p[2] != 'x' || out->negative)
        return NULL;
    p = scan_hex(p + 3, out);
    if (!p || out->kind == NUM_BINARY || *p != ')')
        return NULL;
    out->kind = NUM_NAN_BITS;
    return p + 1;
}

static const char *scan_any(const char *p, Number *out) {
    if (*p == '-') {
        out->negative = true;
        p++;
    }
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        return scan_hex(p + 2, out);
    if (p[0] == '2' && p[1] == '^') {
        out->kind = NUM_BINARY;
        return scan_exponent(p + 2, &out->exponent);
    }
    if (is_digit(*p))
        return scan_decimal(p, out);
    if (strncmp(p, "inf", 3) == 0) {
        out->kind = NUM_INF;
        return p + 3;
    }
    return strncmp(p, "nan", 3) == 0 ? scan_nan(p + 3, out) : NULL;
}

const char *number_scan(const char *p, Number *out) {
    *out = (Number){.kind = NUM_INT, .begin = p};
    out->end = scan_any(p, out);
    if (out->end && is_word(*out->end))
        out->end = NULL;
    return out->end;
}

static const double power10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Few digits and a small power of ten: one correctly rounded operation gives the nearest double. */
static bool quick_f64(const Number *n, double *out) {
    if (n->kind > NUM_DECIMAL || n->inexact || n->magnitude > (1ull << 53) || n->exponent < -22 ||
        n->exponent > 22)
        return false;
    double v = (double)n->magnitude;
    v = n->exponent < 0 ? v / power10[-n->exponent] : v * power10[n->exponent];
    *out = n->negative ? -v : v;
    return true;
}

static bool is_pow2(const Number *n) {
    const char *p = n->begin + (n->begin[0] == '-');
    return n->kind == NUM_BINARY && p[1] == '^';
}

double number_f64(const Number *n) {
    double v;
    if (quick_f64(n, &v))
        return v;
    if (n->kind == NUM_INF)
        return n->negative ? -INFINITY : INFINITY;
    if (is_pow2(n))
        return n->negative ? -ldexp(1, n->exponent) : ldexp(1, n->exponent);
    if (n->kind == NUM_NAN || n->kind == NUM_NAN_BITS)
        return NAN;
    return strtod(n->begin, NULL);
}

float number_f32(const Number *n) {
    double v;
    if (quick_f64(n, &v)) {
        /* Rounding twice errs only where the double lies half-way between two floats. */
        uint64_t bits;
        memcpy(&bits, &v, 8);
        if (v == 0 || (fabs(v) >= (double)FLT_MIN && (bits & 0x1FFFFFFF) != 0x10000000))
            return (float)v;
    }
    if (n->kind == NUM_INF || n->kind == NUM_NAN || n->kind == NUM_NAN_BITS || is_pow2(n))
        return (float)number_f64(n);
    return strtof(n->begin, NULL);
}

bool number_i64(const Number *n, int64_t *out) {
    if (n->kind != NUM_INT || n->inexact || n->magnitude > (uint64_t)INT64_MAX + n->negative)
        return false;
    *out = (int64_t)(n->negative ? -n->magnitude : n->magnitude);
    return true;
}

static const char *int_bits(Arena *a, const Number *n, ElemType e, uint64_t *bits) {
    int64_t v = 0, lo = 0, hi = 1;
    if (n->kind != NUM_INT)
        return arena_strf(a, "is not an integer, as %s needs", elem_name(e)).s;
    if (e == ELEM_UINT64) {
        *bits = n->magnitude;
        return n->inexact || (n->negative && n->magnitude)
                   ? "does not fit uint64, which holds 0 to 18446744073709551615"
                   : NULL;
    }
    if (e == ELEM_INT64) {
        if (!number_i64(n, &v))
            return "does not fit int64, which holds -9223372036854775808 to 9223372036854775807";
        *bits = (uint64_t)v;
        return NULL;
    }
    if (e == ELEM_BOOL) {
        hi = 255; /* what a model stores as true need not be 1 */
    } else {
        lo = elem_min(e);
        hi = elem_max(e);
    }
    if (!number_i64(n, &v) || v < lo || v > hi)
        return arena_strf(a, "does not fit %s, which holds %lld to %lld", elem_name(e),
                          (long long)lo, (long long)hi)
            .s;
    *bits = (uint64_t)v;
    return NULL;
}

/* nan(0x...): the bits as they stand, if they are a NaN of this type. */
static const char *nan_bits(Arena *a, const Number *n, ElemType e, uint64_t *bits) {
    int width = elem_bits(e);
    bool fits = !n->inexact && (width == 64 || n->magnitude >> width == 0);
    *bits = n->magnitude;
    if (!fits || !float_is_nan(e, n->magnitude))
        return arena_strf(a, "is not the bit pattern of a %s NaN", elem_name(e)).s;
    return NULL;
}

const char *number_bits(Arena *a, const Number *n, ElemType e, uint64_t *bits) {
    if (!elem_is_float(e))
        return int_bits(a, n, e, bits);
    if (n->kind == NUM_NAN_BITS)
        return nan_bits(a, n, e, bits);
    if (e == ELEM_FLOAT && n->kind != NUM_NAN) {
        float v = number_f32(n);
        uint32_t word;
        memcpy(&word, &v, 4);
        *bits = word;
        return isinf(v) && n->kind != NUM_INF ? "does not fit float" : NULL;
    }
    double v = n->kind == NUM_NAN ? (double)NAN : number_f64(n);
    if (isinf(v) && n->kind != NUM_INF)
        return arena_strf(a, "does not fit %s", elem_name(e)).s;
    if (!float_encode(e, v, bits))
        return arena_strf(a, "does not fit %s, which %s", elem_name(e),
                          n->kind == NUM_NAN   ? "has no NaN"
                          : n->kind == NUM_INF ? "has no infinity"
                                               : "cannot hold numbers of this size")
            .s;
    if (n->kind == NUM_NAN && n->negative)
        *bits |= 1ull << (elem_bits(e) - 1);
    return NULL;
}
