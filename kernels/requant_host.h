/* What the compiler computes ahead for the integer kernels: multipliers, tables, scratch sizes.
 * Pure functions; none fails. Scales are finite, outputs' non-zero; negative ones are allowed. */
#ifndef QXC_KERNELS_REQUANT_HOST_H
#define QXC_KERNELS_REQUANT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* m = c * 2^k exactly, |c| < 2^24, for the kernels that use the chunk `requant`. NaN counts as 0
 * and infinity as a multiplier that saturates every non-zero sum. */
void requant_from_float(float m, int32_t *c, int32_t *k);

/* How the sums of Conv, Gemm, MatMul and Mul become integers of the result's grid. */
typedef enum SumRounding {
    ROUND_EXACT,  /* as onnxruntime: float32 product, half to even (chunk `requant`) */
    ROUND_SINGLE, /* fixed point, rounded once (chunk `requant_single`) */
    ROUND_DOUBLE, /* fixed point, rounded twice (chunk `requant_double`) */
    ROUND_SHIFT,  /* powers of two alone (chunk `requant_shift`) */
} SumRounding;

/* m = *c * 2^*k for the chunks `requant_single` and `requant_double`: 2^30 <= |*c| < 2^31 and -62
 * <= *k <= -1, so that *c is m to 31 bits, half away from zero (TFLite's QuantizeMultiplier). What
 * is below 2^-32, and NaN, counts as 0; what is too large as nearly 2^30, which saturates. */
void requant_fixed(double m, int32_t *c, int32_t *k);

/* The exponent of a power of two for the chunk `requant_shift`; false for any other m. What is off
 * by at most one part in 2^18 counts: scales that are rounded, or with a factor that has ties go up
 * (passes/raise/raise_scaling.h), which they do here anyway. */
bool requant_power(double m, int32_t *k);

/* For add_q: ma, mb = sa / sy, sb / sy in 64-bit fixed point of `bits`-wide tensors (8 or 16).
 * Provided |sa / sy| and |sb / sy| are below 2^8, the kernel's value before rounding lies within
 * 2^-20 of the exact real one, so that its result is the exact value rounded half to even unless
 * that is nearer than 2^-20 to a tie, and never further than one step. Where both ratios are
 * multiples of 2^-shift, ties included, it is exact. Larger ratios are cut to 2^24: they saturate
 * unless the terms cancel. */
void requant_add(float sa, float sb, float sy, int bits, int64_t *ma, int64_t *mb, int32_t *shift);

/* For addend_q and round_sum_q: m[i] = s[i] / sy of n scales in 64-bit fixed point, as requant_add
 * does it for two: a sum of `terms` products, before rounding, lies within terms^2 2^-21 of the
 * exact real one (of 8 bits terms^2 2^-37) where ratios are below 2^8. sy may be that of a mean,
 * times the number of operands. */
void requant_terms(const float *s, size_t n, size_t terms, double sy, int bits, int64_t *m,
                   int32_t *shift);

/* For div_q: m = sa / (sb * sy) in 64-bit fixed point; the quotient before rounding lies within
 * 2^-20 of the exact real one, or both saturate. Exact where the ratio is a multiple of 2^-shift.
 */
void requant_quotient(float sa, float sb, float sy, int bits, int64_t *m, int32_t *shift);

/* m = *c * 2^-*shift to 31 bits, for the chunks `round_wide` and `round_root`: 2^30 <= *c < 2^31, m
 * > 0. */
void requant_real(double m, int32_t *c, int32_t *shift);

/* For reduceprod_q: sx^n / sy = *c * 2^-*shift likewise; false where its exponent is beyond 2^30.
 */
bool requant_power_of(float sx, int64_t n, float sy, int32_t *c, int32_t *shift);

/* For logsoftmax_q and reducelog_q: step = sx / sy * 2^shift, log2 = ln(2) / sy * 2^(shift - 28)
 * and unit = ln(sx) / sy * 2^shift, so that differences of 16-bit numbers by step, logarithms of up
 * to 2^62 by log2, and unit are each below 2^61. */
void requant_log(float sx, float sy, int64_t *step, int64_t *log2, int64_t *unit, int32_t *shift);

/* For requantize: the same with one term. */
void requant_ratio(float sx, float sy, int bits, int64_t *m, int32_t *shift);
/* For prelu_q: the same for n ratios. */
void requant_ratios(const double *r, size_t n, int bits, int64_t *m, int32_t *shift);

/* For tables of int32: m[i] = r[i] * 2^shift, of which the largest has 30 bits: none is off by more
 * than 2^-30 of the largest; those above 2^24 are cut. 0 <= shift <= 61. */
void requant_table(const double *r, size_t n, int32_t *m, int32_t *shift);

/* For avgpool2d_q with at most `count` inputs in a window; within 2^-20 for ratios below 2 and
 * windows of up to 1024 inputs (8-bit: ratios below 2^8 and 2^20 inputs). */
void requant_pool(float sx, float sy, int bits, int64_t count, int64_t *m, int32_t *shift);

/* For the chunk `round_scaled`: sx / sy = n / d * 2^e exactly, n and d without a common factor. Of
 * ratios above 2^24, 2^24 remains. */
void requant_scaled(float sx, float sy, int32_t *n, int32_t *d, int32_t *e);

/* For softmax_q: 256 entries for 8-bit x, 512 for 16-bit (`bits`). sx > 0. */
void softmax_table(float sx, int bits, uint32_t *table);
/* 2^shift / sy for rows of n elements. */
void softmax_inverse(float sy, int32_t n, int64_t *inv, int32_t *shift);

/* A good `tile` for conv2d_*: at least `least`, from 16 on a multiple of 16, with the unfolded
 * input (len = ic / group * kh * kw elements of `bytes` bytes a position) staying in `room` bytes
 * where possible. */
int32_t conv2d_tile(int32_t positions, int32_t len, int32_t bytes, int32_t room, int32_t least);

#endif
