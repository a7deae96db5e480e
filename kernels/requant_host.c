#include "kernels/requant_host.h"

#include <math.h>

void requant_from_float(float m, int32_t *c, int32_t *k) {
    int e = 0;
    *c = *k = 0;
    if (isnan(m) || m == 0)
        return;
    if (isinf(m)) {
        *c = m < 0 ? -(1 << 23) : 1 << 23;
        *k = 128;
        return;
    }
    *c = (int32_t)ldexpf(frexpf(m, &e), 24);
    *k = e - 24;
}

void requant_fixed(double m, int32_t *c, int32_t *k) {
    int e = 0;
    double f = frexp(m, &e); /* m = f * 2^e */
    int64_t q = isfinite(m) ? llrint(trunc(ldexp(f, 31) + copysign(0.5, f))) : 0;
    if (q == INT64_C(1) << 31 || q == -(INT64_C(1) << 31)) {
        q /= 2;
        e++;
    }
    if (isinf(m) || (e > 30 && q != 0)) {
        q = m < 0 ? -INT32_MAX : INT32_MAX;
        e = 30;
    }
    if (e < -31 || q == 0)
        q = e = 0;
    *c = (int32_t)q;
    *k = e - 31;
}

bool requant_power(double m, int32_t *k) {
    int e = 0;
    if (!(m > 0 && m < 0x1p32))
        return false;
    frexp(m * 1.4142, &e); /* to the nearest one */
    *k = e - 1;
    return *k <= 30 && fabs(ldexp(m, -*k) - 1) <= 0x1p-18;
}

/* Ratios in fixed point with as many fraction bits as fit `bits` bits next to `headroom` bits for
 * what they are multiplied with. */
static int32_t fixed_shift(double largest, int headroom, int bits) {
    int e = 0;
    frexp(largest, &e); /* largest < 2^e */
    int shift = bits - headroom - e;
    return shift < 0 ? 0 : shift > 61 ? 61 : shift;
}

static double cut(double r) {
    return r > 16777216.0 ? 16777216.0 : r < -16777216.0 ? -16777216.0 : r;
}

static double ratio(float s, float sy) {
    return cut((double)s / (double)sy);
}

void requant_add(float sa, float sb, float sy, int bits, int64_t *ma, int64_t *mb, int32_t *shift) {
    double ra = ratio(sa, sy), rb = ratio(sb, sy);
    *shift = fixed_shift(fmax(fabs(ra), fabs(rb)), bits + 1,
                         bits == 8 ? 52 : 62); /* 52: exact in double too */
    *ma = llrint(ldexp(ra, *shift));
    *mb = llrint(ldexp(rb, *shift));
}

void requant_terms(const float *s, size_t n, size_t terms, double sy, int bits, int64_t *m,
                   int32_t *shift) {
    double largest = 0;
    int e = 0;
    frexp((double)terms, &e);
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, cut((double)s[i] / sy));
    *shift = fixed_shift(largest, bits + e, 62);
    for (size_t i = 0; i < n; i++)
        m[i] = llrint(ldexp(cut((double)s[i] / sy), *shift));
}

void requant_quotient(float sa, float sb, float sy, int bits, int64_t *m, int32_t *shift) {
    double r = fmin((double)sa / ((double)sb * (double)sy), ldexp(1, 2 * bits + 2));
    *shift = fixed_shift(r, bits, 62);
    if (*shift > 62 - bits) /* the divisor is shifted, too */
        *shift = 62 - bits;
    *m = llrint(ldexp(r, *shift));
}

void requant_real(double m, int32_t *c, int32_t *shift) {
    int e = 0;
    int64_t q = llrint(ldexp(frexp(m, &e), 31));
    *c = (int32_t)(q == INT64_C(1) << 31 ? q / 2 : q);
    *shift = 31 - e - (q == INT64_C(1) << 31);
}

/* x = f * 2^e of f from 1/2 to below 1. */
typedef struct Scaled {
    double f;
    int64_t e;
} Scaled;

static Scaled scaled(double f, int64_t e) {
    int k = 0;
    f = frexp(f, &k);
    return (Scaled){f, e + k};
}

bool requant_power_of(float sx, int64_t n, float sy, int32_t *c, int32_t *shift) {
    Scaled power = scaled(1, 0), base = scaled((double)sx, 0);
    for (; n > 0; n >>= 1) {
        if (n & 1)
            power = scaled(power.f * base.f, power.e + base.e);
        base = scaled(base.f * base.f, 2 * base.e);
    }
    requant_real(power.f / (double)sy, c, shift);
    if (power.e < -(1 << 30) || power.e > 1 << 30)
        return false;
    *shift -= (int32_t)power.e;
    return true;
}

/* r * 2^shift to the nearest, at most `most`. */
static int64_t fixed_cut(double r, int shift, double most) {
    return llround(fmax(-most, fmin(ldexp(r, shift), most)));
}

void requant_log(float sx, float sy, int64_t *step, int64_t *log2, int64_t *unit, int32_t *shift) {
    double each = (double)sx / (double)sy, ln2 = 0x1.62e42fefa39efp-1 / (double)sy;
    double one = log((double)sx) / (double)sy;
    int room[3];
    frexp(each, &room[0]);
    frexp(ln2, &room[1]);
    frexp(one, &room[2]);
    int most = 44 - room[0];
    most = most < 55 - room[1] ? most : 55 - room[1];
    most = most < 60 - room[2] ? most : 60 - room[2];
    *shift = most > 44 ? 44 : most < 0 ? 0 : most;
    *step = fixed_cut(each, *shift, 0x1p44);
    *log2 = fixed_cut(ln2, *shift - 28, 0x1p27);
    *unit = fixed_cut(one, *shift, 0x1p60);
}

void requant_ratios(const double *r, size_t n, int bits, int64_t *m, int32_t *shift) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(cut(r[i])));
    *shift = fixed_shift(largest, bits, 62);
    for (size_t i = 0; i < n; i++)
        m[i] = llrint(ldexp(cut(r[i]), *shift));
}

void requant_table(const double *r, size_t n, int32_t *m, int32_t *shift) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(cut(r[i])));
    *shift = fixed_shift(largest, 0, 30);
    for (size_t i = 0; i < n; i++)
        m[i] = (int32_t)lrint(ldexp(cut(r[i]), *shift));
}

void requant_ratio(float sx, float sy, int bits, int64_t *m, int32_t *shift) {
    double r = (double)sx / (double)sy;
    requant_ratios(&r, 1, bits, m, shift);
}

void requant_pool(float sx, float sy, int bits, int64_t count, int64_t *m, int32_t *shift) {
    double r = ratio(sx, sy);
    int e = 0;
    frexp((double)count, &e);
    *shift = fixed_shift(fabs(r), bits + e, 62);
    if (*shift > 62 - e) /* count << shift must fit too */
        *shift = 62 - e;
    *m = llrint(ldexp(r, *shift));
}

/* |s| = m * 2^e with 24 bits of m. */
static int32_t mantissa(float s, int *e) {
    int32_t m = (int32_t)ldexpf(frexpf(fabsf(s), e), 24);
    *e -= 24;
    return m;
}

void requant_scaled(float sx, float sy, int32_t *n, int32_t *d, int32_t *e) {
    int ex = 24, ey = 0;
    bool cut = fabs((double)sx / (double)sy) > 16777216.0;
    int32_t x = cut ? 1 : mantissa(sx, &ex), y = cut ? 1 : mantissa(sy, &ey), a = x, b = y;
    while (b != 0) { /* the greatest common divisor */
        int32_t rest = a % b;
        a = b;
        b = rest;
    }
    *n = signbit(sx) != signbit(sy) ? -(x / a) : x / a;
    *d = x == 0 ? 2 : y / a; /* 1 stands for a ratio of 1 */
    *e = ex - ey;
}

void softmax_table(float sx, int bits, uint32_t *table) {
    for (int i = 0; i < 256; i++)
        table[i] = (uint32_t)llrint(ldexp(exp(-i * (double)sx), 31));
    for (int i = 0; i < 256 && bits > 8; i++)
        table[256 + i] = (uint32_t)llrint(ldexp(exp(-256.0 * i * (double)sx), 31));
}

void softmax_inverse(float sy, int32_t n, int64_t *inv, int32_t *shift) {
    int e = 0, en = 0;
    double r = fmin(1.0 / (double)sy, 2147483648.0);
    frexp(r, &e);
    frexp((double)n, &en);
    int s = 31 - (e > en ? e : en); /* e^0 = 2^31: both sides of the division below 2^63 */
    *shift = s < 0 ? 0 : s > 30 ? 30 : s;
    *inv = llrint(ldexp(r, *shift));
}

int32_t conv2d_tile(int32_t positions, int32_t len, int32_t bytes, int32_t room, int32_t least) {
    int64_t fit = room / ((int64_t)(len > 0 ? len : 1) * bytes);
    int64_t most = ((int64_t)positions + 15) / 16 * 16;
    if (fit >= 16)
        fit = fit / 16 * 16;
    if (fit > most)
        fit = most;
    return fit < least ? least : fit > 256 ? 256 : (int32_t)fit;
}
