#include "passes/params.h"

#include <float.h>
#include <math.h>

IntRange params_range(ElemType storage, bool symmetric, bool reduce_range) {
    IntRange r = {elem_min(storage), elem_max(storage)};
    if (reduce_range) {
        r.lo = r.lo < 0 ? r.lo / 2 : 0;
        r.hi = r.lo < 0 ? -r.lo : r.hi / 2;
    } else if (symmetric && r.lo < 0 && elem_bits(storage) > 1) {
        r.lo = -r.hi;
    }
    return r;
}

float params_pow2_at_least(double x) {
    return (float)exp2(ceil(log2(x)));
}

void params_from_minmax(float min, float max, IntRange r, bool symmetric, bool pow2, float *scale,
                        int64_t *zp) {
    double lo = min < 0 ? (double)min : 0, hi = max > 0 ? (double)max : 0;
    if (symmetric) {
        hi = -lo > hi ? -lo : hi;
        lo = -hi;
    }
    double s = (hi - lo) / (double)(r.hi - r.lo);
    if (!(s >= (double)FLT_MIN) || !isfinite(s)) {
        *scale = 1.0F;
        *zp = 0;
        return;
    }
    if (pow2)
        s = (double)params_pow2_at_least(s);
    *scale = (float)s;
    double z = symmetric ? rint((double)(r.lo + r.hi) / 2) : rint((double)r.lo - lo / s);
    *zp = (int64_t)fmin(fmax(z, (double)r.lo), (double)r.hi);
}

int32_t params_bias(double bias, float scale) {
    double q = rint(bias / (double)scale);
    if (isnan(q))
        return 0;
    return (int32_t)fmin(fmax(q, (double)INT32_MIN), (double)INT32_MAX);
}

double params_bias_min_scale(double max_abs_bias, double sum) {
    return 1.0001 * max_abs_bias / ((double)INT32_MAX - fmin(sum, 0x1p30));
}

double params_bias_min_scale_wide(double max_abs_bias) {
    return max_abs_bias / 0x1p61;
}
