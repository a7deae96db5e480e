/* Long rows of plain numbers: what is done to every element of a large constant. Compiled for
 * vector units (the Makefile gives this file -O3) and written so that compilers see them; the
 * results do not depend on the width of the vectors. Arrays are the caller's, must not overlap,
 * and floats may stand at any address. Pure functions; none fails. */
#ifndef QXC_SUPPORT_ROWS_H
#define QXC_SUPPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A float at an address of any alignment, as in the middle of a mapped file. */
typedef float RowFloat __attribute__((aligned(1), may_alias));

/* Widens [*min, *max] to hold the n numbers; NaN is passed over. */
void row_range(const RowFloat *x, size_t n, float *min, float *max);
/* The same for n ranges at once, number i into range i. */
void row_ranges(const RowFloat *x, size_t n, float *min, float *max);
/* Whether none is infinite or NaN. */
bool row_is_finite(const RowFloat *x, size_t n);
/* Whether all are finite, greater than 0 and normal, as scales are. */
bool row_is_positive(const RowFloat *x, size_t n);

/* What integers a row is quantized to: lo <= y <= hi. Within +-2^7 of 0 (signed) or 0..255, with
 * zero points within +-2^21. */
typedef struct RowRange {
    int32_t lo, hi;
} RowRange;

/* y = clamp(rint(x / scale) + zp, lo, hi), divided in float32, ties to even; NaN gives lo. y holds
 * the low 8 bits, for signed and unsigned bytes alike. */
void row_quantize(const RowFloat *x, size_t n, float scale, int32_t zp, RowRange r, uint8_t *y);
/* The same with a scale, or both parameters, for each number. */
void row_quantize_scales(const RowFloat *x, size_t n, const float *scale, int32_t zp, RowRange r,
                         uint8_t *y);
void row_quantize_each(const RowFloat *x, size_t n, const float *scale, const int32_t *zp,
                       RowRange r, uint8_t *y);

/* x = clamp(rint(x / scale), lo, hi) * scale, what the integers of x stand for; lo and hi are less
 * the zero point, within +-2^22. NaN gives lo. */
void row_round(float *x, size_t n, float scale, float lo, float hi);
/* The same with a scale for each number. */
void row_round_scales(float *x, size_t n, const float *scale, float lo, float hi);

/* sum += x; */
void row_add(const float *x, size_t n, double *sum);
/* y += by x; */
void row_add_scaled(const double *x, size_t n, double by, double *y);
/* and the sum of x y. */
double row_dot(const double *x, const double *y, size_t n);

/* ROW_LANES groups of n numbers side by side, number i of group k at x[i * ROW_LANES + k]: widens
 * [min[k], max[k]] to hold those of group k, and adds to square[k] the sum of x^2, in float; */
enum { ROW_LANES = 16 };
void row_spans(const RowFloat *x, size_t n, float *min, float *max, double *square);
/* or how well scales serve them. Each group has a scale and limits of its own, integers within
 * +-2^21; q = clamp(rint(x / scale), lo, hi). Adds up x q and q^2 of each group, which say how well
 * the scale serves: any other one, t, for the same q leaves an error of sum x^2 - 2 t sum x q + t^2
 * sum q^2, the least of all sum xq / sum q^2. Summed in float, for comparing; */
void row_products(const RowFloat *x, size_t n, const float *scale, const float *lo, const float *hi,
                  double *xq, double *qq);
/* or in double, where x that are integers times a scale give that scale. */
void row_products_exact(const RowFloat *x, size_t n, const float *scale, const float *lo,
                        const float *hi, double *xq, double *qq);

/* Four bits each of n bytes, two into one, the first into the low half; and back, sign extended
 * where asked. What is left of an odd n is not touched. */
void row_pack4(const uint8_t *x, size_t n, uint8_t *y);
void row_unpack4(const uint8_t *x, size_t n, bool is_signed, uint8_t *y);

/* The low `bits` bits of each byte plus `add`, into bits `shift` on of y; where that is 0, the
 * others of y become 0. */
void row_join(const uint8_t *x, size_t n, uint8_t add, int bits, int shift, uint8_t *y);

/* Smallest and largest of n > 0 bytes. */
void row_range_u8(const uint8_t *x, size_t n, int *min, int *max);
void row_range_s8(const int8_t *x, size_t n, int *min, int *max);

#endif
