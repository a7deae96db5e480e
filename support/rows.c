/* See support/rows.h. Comparisons are of integers, or of the form a < b ? a : b that is one
 * instruction: compilers do not make vectors of others, which may trap. */
#include "support/rows.h"
#include "support/wide.h"

#include <float.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic has to be done in float");

enum { LANES = 32 }; /* running results side by side, as no order of them may matter */

WIDE void row_ranges(const RowFloat *x, size_t n, float *restrict min, float *restrict max) {
    for (size_t i = 0; i < n; i++) {
        float v = x[i];
        min[i] = v < min[i] ? v : min[i];
        max[i] = v > max[i] ? v : max[i];
    }
}

WIDE void row_range(const RowFloat *x, size_t n, float *min, float *max) {
    float low[LANES], high[LANES];
    for (size_t k = 0; k < LANES; k++) {
        low[k] = *min;
        high[k] = *max;
    }
    for (; n >= LANES; n -= LANES, x += LANES)
        for (size_t k = 0; k < LANES; k++) {
            float v = x[k];
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
        }
    row_ranges(x, n, low, high);
    for (size_t k = 0; k < LANES; k++) {
        *min = low[k] < *min ? low[k] : *min;
        *max = high[k] > *max ? high[k] : *max;
    }
}

WIDE bool row_is_finite(const RowFloat *x, size_t n) {
    uint32_t odd = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        /* the exponent is all ones: adding one to it carries into the sign's place */
        odd |= (bits & 0x7F800000u) + 0x00800000u;
    }
    return odd >> 31 == 0;
}

WIDE bool row_is_positive(const RowFloat *x, size_t n) {
    int odd = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        /* from FLT_MIN to FLT_MAX bits count upwards; those of negative numbers lie above */
        odd |= bits - 0x00800000u >= 0x7F000000u;
    }
    return !odd;
}

/* Adding 1.5 * 2^23 rounds a number of at most 2^22 to an integer, which the low bits then hold. */
#define MAGIC 12582912.0F
static int32_t round_half_even(float v) {
    v += MAGIC;
    int32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits - 0x4B400000;
}

/* lo and hi are integers, so that clamping before rounding is the same. NaN fails the first
 * comparison. */
static uint8_t quantize(float x, float scale, float zp, float lo, float hi) {
    float v = x / scale, least = lo - zp, most = hi - zp;
    v = v > least ? v : least;
    v = v < most ? v : most;
    return (uint8_t)(round_half_even(v) + (int32_t)zp);
}

WIDE void row_quantize(const RowFloat *x, size_t n, float scale, int32_t zp, RowRange r,
                       uint8_t *restrict y) {
    for (size_t i = 0; i < n; i++)
        y[i] = quantize(x[i], scale, (float)zp, (float)r.lo, (float)r.hi);
}

WIDE void row_quantize_scales(const RowFloat *x, size_t n, const float *scale, int32_t zp,
                              RowRange r, uint8_t *restrict y) {
    for (size_t i = 0; i < n; i++)
        y[i] = quantize(x[i], scale[i], (float)zp, (float)r.lo, (float)r.hi);
}

WIDE void row_quantize_each(const RowFloat *x, size_t n, const float *scale, const int32_t *zp,
                            RowRange r, uint8_t *restrict y) {
    for (size_t i = 0; i < n; i++)
        y[i] = quantize(x[i], scale[i], (float)zp[i], (float)r.lo, (float)r.hi);
}

static float rounded(float x, float scale, float lo, float hi) {
    float v = x / scale;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return ((v + MAGIC) - MAGIC) * scale;
}

WIDE void row_round(float *restrict x, size_t n, float scale, float lo, float hi) {
    for (size_t i = 0; i < n; i++)
        x[i] = rounded(x[i], scale, lo, hi);
}

WIDE void row_round_scales(float *restrict x, size_t n, const float *scale, float lo, float hi) {
    for (size_t i = 0; i < n; i++)
        x[i] = rounded(x[i], scale[i], lo, hi);
}

WIDE void row_add(const float *x, size_t n, double *restrict sum) {
    for (size_t i = 0; i < n; i++)
        sum[i] += (double)x[i];
}

WIDE void row_add_scaled(const double *x, size_t n, double by, double *restrict y) {
    for (size_t i = 0; i < n; i++)
        y[i] += by * x[i];
}

WIDE double row_dot(const double *x, const double *y, size_t n) {
    double part[LANES] = {0}, sum = 0;
    for (; n >= LANES; n -= LANES, x += LANES, y += LANES)
        for (size_t k = 0; k < LANES; k++)
            part[k] += x[k] * y[k];
    for (size_t k = 0; k < n; k++)
        part[k] += x[k] * y[k];
    for (size_t k = 0; k < LANES; k++)
        sum += part[k];
    return sum;
}

/* Rounding by a reciprocal may miss a tie, on both sides of which the error is the same. */
static float nearest(float x, float steps, float lo, float hi) {
    float v = x * steps;
    v = v > lo ? v : lo;
    v = v < hi ? v : hi;
    return (v + MAGIC) - MAGIC;
}

static void invert(const float *scale, float *restrict steps) {
    for (size_t k = 0; k < ROW_LANES; k++)
        steps[k] = 1 / scale[k];
}

enum { PART = 256 }; /* so many are summed in float */

WIDE void row_spans(const RowFloat *x, size_t n, float *restrict min, float *restrict max,
                    double *restrict square) {
    float low[ROW_LANES], high[ROW_LANES];
    for (size_t k = 0; k < ROW_LANES; k++) {
        low[k] = min[k];
        high[k] = max[k];
    }
    while (n > 0) {
        size_t part = n < PART ? n : PART;
        float sum[ROW_LANES] = {0};
        for (size_t i = 0; i < part; i++, x += ROW_LANES)
#pragma GCC unroll 1 /* gcc 12 finds no vectors in what it has unrolled */
            for (size_t k = 0; k < ROW_LANES; k++) {
                float v = x[k];
                low[k] = v < low[k] ? v : low[k];
                high[k] = v > high[k] ? v : high[k];
                sum[k] += v * v;
            }
        for (size_t k = 0; k < ROW_LANES; k++)
            square[k] += (double)sum[k];
        n -= part;
    }
    for (size_t k = 0; k < ROW_LANES; k++) {
        min[k] = low[k];
        max[k] = high[k];
    }
}

WIDE void row_products(const RowFloat *x, size_t n, const float *scale, const float *lo,
                       const float *hi, double *restrict xq, double *restrict qq) {
    float steps[ROW_LANES];
    invert(scale, steps);
    while (n > 0) {
        size_t part = n < PART ? n : PART;
        float a[ROW_LANES] = {0}, b[ROW_LANES] = {0};
        for (size_t i = 0; i < part; i++, x += ROW_LANES)
            for (size_t k = 0; k < ROW_LANES; k++) {
                float q = nearest(x[k], steps[k], lo[k], hi[k]);
                a[k] += x[k] * q;
                b[k] += q * q;
            }
        for (size_t k = 0; k < ROW_LANES; k++) {
            xq[k] += (double)a[k];
            qq[k] += (double)b[k];
        }
        n -= part;
    }
}

WIDE void row_products_exact(const RowFloat *x, size_t n, const float *scale, const float *lo,
                             const float *hi, double *restrict xq, double *restrict qq) {
    float steps[ROW_LANES];
    invert(scale, steps);
    for (size_t i = 0; i < n; i++, x += ROW_LANES)
        for (size_t k = 0; k < ROW_LANES; k++) {
            double q = (double)nearest(x[k], steps[k], lo[k], hi[k]);
            xq[k] += (double)x[k] * q;
            qq[k] += q * q;
        }
}

WIDE void row_pack4(const uint8_t *x, size_t n, uint8_t *restrict y) {
    for (size_t i = 0; i < n / 2; i++)
        y[i] = (uint8_t)((x[2 * i] & 15) | x[2 * i + 1] << 4);
}

WIDE void row_unpack4(const uint8_t *x, size_t n, bool is_signed, uint8_t *restrict y) {
    uint8_t sign = is_signed ? 8 : 0; /* flipped and taken off again, it fills the upper half */
    for (size_t i = 0; i < n / 2; i++) {
        y[2 * i] = (uint8_t)(((x[i] & 15) ^ sign) - sign);
        y[2 * i + 1] = (uint8_t)((x[i] >> 4 ^ sign) - sign);
    }
}

WIDE void row_join(const uint8_t *x, size_t n, uint8_t add, int bits, int shift,
                   uint8_t *restrict y) {
    uint8_t mask = (uint8_t)((1u << bits) - 1), kept = shift ? 255 : 0;
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)((y[i] & kept) | ((uint8_t)(x[i] + add) & mask) << shift);
}

WIDE void row_range_u8(const uint8_t *x, size_t n, int *min, int *max) {
    uint8_t low = 255, high = 0;
    for (size_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *min = low;
    *max = high;
}

WIDE void row_range_s8(const int8_t *x, size_t n, int *min, int *max) {
    int8_t low = 127, high = -128;
    for (size_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *min = low;
    *max = high;
}
