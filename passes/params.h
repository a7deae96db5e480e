/* Scales, zero points and integers from real numbers. Pure functions; no failure. */
#ifndef QXC_PASSES_PARAMS_H
#define QXC_PASSES_PARAMS_H

#include "ir/ir.h"

typedef struct IntRange {
    int64_t lo, hi;
} IntRange;

/* The part of a type's integers, all of them or those of a narrower type, that is used: all;
 * -127..127 (-7..7) where symmetric and signed; half with reduce_range (-64..64, 0..127), which
 * wins over symmetric. One bit is used as it is. */
IntRange params_part(IntRange all, bool symmetric, bool reduce_range);
/* The same of all of a storage type. */
IntRange params_range(ElemType storage, bool symmetric, bool reduce_range);

/* Scale and zero point that map [min, max], widened to hold 0, onto `r`. The scale is formed in
 * double and rounded once to float32; the zero point is rint(lo - min/scale) with the unrounded
 * scale (onnxruntime's compute_scale_zp). A range below the smallest normal float gives scale 1,
 * zero point 0 (the middle is not used then either). With `pow2` the scale is rounded up to a
 * power of two. */
void params_from_minmax(float min, float max, IntRange r, bool symmetric, bool pow2, float *scale,
                        int64_t *zp);
/* The same for n ranges at once. */
void params_from_ranges(const float *min, const float *max, size_t n, IntRange r, bool symmetric,
                        bool pow2, float *scale, int64_t *zp);

/* Numbers to fit parameters to: ROW_LANES groups of n side by side (support/rows.h), where zeros,
 * which every group may hold, cost nothing; or with `one` a single group of n. */
typedef struct FitNumbers {
    const RowFloat *x;
    size_t n;
    bool one;
} FitNumbers;

/* What parameters are fitted to: the integers, and how many times more the part of the error counts
 * that lies along the numbers. Least squares makes numbers smaller, by an eighth with two bits:
 * clipping costs less than wide steps. All groups of a weight do so at once and every layer behind
 * it again, so that this part adds up where the rest averages out. */
typedef struct FitAim {
    IntRange range;
    bool symmetric, pow2;
    double along;
} FitAim;

/* Scale and zero point of each group that make the sum of (x - dequantize(quantize(x)))^2 smallest
 * (the part along x more often, as `aim` says): of ranges shrunk step by step to a fifth, each with
 * the scale that suits its integers by least squares, sum x q / sum q^2, the best, and once or
 * twice more from there. Few steps are better spent where most numbers are. For ternary weights
 * that is Ternary Weight Networks' solution (Li, Zhang, Liu 2016), for one bit, where the zero
 * point is 0 or 1, the mean of the numbers that become 1. Integers have at most 16 bits. `scale`
 * and `zp` have ROW_LANES entries, all the same for one group. */
void params_fit(FitNumbers x, const FitAim *aim, float *scale, int64_t *zp);

/* rint(bias / scale) saturated to int32; `scale` is the float32 product of input and weight. */
int32_t params_bias(double bias, float scale);

/* The power of two that is not below x > 0. */
float params_pow2_at_least(double x);

/* Smallest s_x*s_w for which |bias| and a sum of products of at most `sum` steps still fit int32
 * with a margin of 1e-4; of the sum, half of int32 is counted at most. */
double params_bias_min_scale(double max_abs_bias, double sum);
/* The same where sums have 64 bits, as those of 16-bit operands do: a sum takes up less than 2^61,
 * the bias as much, so that only channels whose weights are next to nothing are concerned. */
double params_bias_min_scale_wide(double max_abs_bias);

#endif
