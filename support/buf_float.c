/* Shortest decimals: with few digits first, the first decimal that reads back to the same bits is
 * kept. A number that some decimal of FLT_DIG (6) or DBL_DIG (15) digits reads to prints as that
 * decimal at this precision, so the search starts there and trailing zeros go. The fast path
 * converts with one correctly rounded multiplication or division, which is exact for up to 15
 * digits and powers of ten up to 10^22; what it cannot decide goes through snprintf and strtod. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/buf.h"

/* digits * 10^exp10, digits without trailing zeros. */
typedef struct Decimal {
    uint64_t digits;
    int exp10;
} Decimal;

static const double power10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double scale10(double v, int e) {
    return e < 0 ? v / power10[-e] : v * power10[e];
}

/* A double half-way between two floats: a decimal nearest to it may round to either. */
static bool is_halfway_f32(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & 0x1FFFFFFF) == 0x10000000;
}

/* The exponent e with 10^e <= v < 10^(e+1), up to one off where v is next to a power of ten. That
 * of the power of two below v times log10(2), 1233 / 4096, is at most one too small. */
static int exponent_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int e2 = (int)(bits >> 52) - 1023;
    int e = e2 * 1233 >> 12;
    return v >= scale10(1, e + 1) ? e + 1 : e;
}

/* To the nearest integer, ties to even, for 0 <= v < 2^51: above 2^52 doubles are integers. */
static double to_integer(double v) {
    return v + 0x1p52 - 0x1p52;
}

static bool fast(double v, bool f32, Decimal *out) {
    if (!(v >= 1e-7 && v < 1e15)) /* so that all powers below stay within the table */
        return false;
    int e = exponent_of(v), most = f32 ? 9 : 15;
    for (int n = f32 ? FLT_DIG : DBL_DIG; n <= most; n++) {
        int exp10 = e + 1 - n;
        double digits = to_integer(scale10(v, -exp10));
        double back = scale10(digits, exp10);
        if (f32 && is_halfway_f32(back))
            return false;
        if (f32 ? (float)back == (float)v : back == v) {
            *out = (Decimal){(uint64_t)digits, exp10};
            return true;
        }
    }
    return false;
}

/* Reads what "%.*e" wrote, whatever the locale's decimal point. */
static Decimal parse_printed(const char *text) {
    Decimal d = {0};
    int places = 0;
    bool fraction = false;
    for (; *text && *text != 'e'; text++) {
        if (*text >= '0' && *text <= '9') {
            d.digits = d.digits * 10 + (uint64_t)(*text - '0');
            places += fraction;
        } else {
            fraction = true;
        }
    }
    d.exp10 = (*text ? atoi(text + 1) : 0) - places;
    return d;
}

static Decimal slow(double v, bool f32) {
    Decimal d = {0};
    bool subnormal = v < (f32 ? (double)FLT_MIN : DBL_MIN);
    int n = subnormal ? 1 : f32 ? FLT_DIG : DBL_DIG;
    for (; n <= (f32 ? 9 : 17); n++) {
        char text[40];
        snprintf(text, sizeof text, "%.*e", n - 1, v);
        d = parse_printed(text);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)d.digits, d.exp10);
        if (f32 ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
            break;
    }
    return d;
}

/* Writes the digits of v, 0 of which count as none, so that they end before `end`. */
static char *digits_before(char *end, uint64_t v) {
    for (; v; v /= 10)
        *--end = (char)('0' + v % 10);
    return end;
}

static void put_scientific(Buf *b, const char *digits, int n, int e) {
    buf_byte(b, digits[0]);
    buf_byte(b, '.');
    buf_put(b, n > 1 ? digits + 1 : "0", n > 1 ? (size_t)n - 1 : 1);
    buf_byte(b, 'e');
    buf_byte(b, e < 0 ? '-' : '+');
    int size = e < 0 ? -e : e;
    if (size < 10)
        buf_byte(b, '0');
    buf_i64(b, size);
}

/* 0.0001 to 9999999999999999.0 in full, else with an exponent, as Python and NumPy do. */
static void put_decimal(Buf *b, Decimal d) {
    static const char zeros[] = "0000000000000000";
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exp10++;
    }
    char text[24], *end = text + sizeof text, *digits = digits_before(end, d.digits);
    int n = (int)(end - digits);
    int e = d.exp10 + n - 1; /* of the first digit */
    if (e < -4 || e >= 16) {
        put_scientific(b, digits, n, e);
    } else if (e < 0) {
        buf_put(b, "0.", 2);
        buf_put(b, zeros, (size_t)-e - 1);
        buf_put(b, digits, (size_t)n);
    } else if (d.exp10 >= 0) {
        buf_put(b, digits, (size_t)n);
        buf_put(b, zeros, (size_t)d.exp10);
        buf_put(b, ".0", 2);
    } else {
        buf_put(b, digits, (size_t)e + 1);
        buf_byte(b, '.');
        buf_put(b, digits + e + 1, (size_t)(n - e - 1));
    }
}

static void put_finite(Buf *b, double v, bool f32) {
    if (signbit(v)) {
        buf_byte(b, '-');
        v = -v;
    }
    if (v < 1e15 && v == floor(v) && (!f32 || v <= 16777216.0)) {
        buf_u64(b, (uint64_t)v);
        buf_put(b, ".0", 2);
        return;
    }
    Decimal d;
    if (isinf(v))
        buf_text(b, "inf");
    else
        put_decimal(b, fast(v, f32, &d) ? d : slow(v, f32));
}

void buf_f32(Buf *b, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (bits == 0x7FC00000)
        buf_text(b, "nan");
    else if (isnan(v))
        buf_fmt(b, "nan(0x%08x)", bits);
    else
        put_finite(b, (double)v, true);
}

void buf_f64(Buf *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    if (bits == 0x7FF8000000000000)
        buf_text(b, "nan");
    else if (isnan(v))
        buf_fmt(b, "nan(0x%016llx)", (unsigned long long)bits);
    else
        put_finite(b, v, false);
}
