#include "passes/params.h"
#include "support/wide.h"

#include <float.h>
#include <math.h>

IntRange params_part(IntRange r, bool symmetric, bool reduce_range) {
    if (r.hi - r.lo == 1)
        return r;
    if (reduce_range) {
        int64_t half = r.lo < 0 ? -(r.lo / 2) : r.hi / 2;
        return (IntRange){r.lo < 0 ? -half : 0, half};
    }
    if (symmetric && r.lo < -r.hi)
        r.lo = -r.hi;
    return r;
}

IntRange params_range(ElemType storage, bool symmetric, bool reduce_range) {
    return params_part((IntRange){elem_min(storage), elem_max(storage)}, symmetric, reduce_range);
}

float params_pow2_at_least(double x) {
    return (float)exp2(ceil(log2(x)));
}

enum { FEW = 64 }; /* so many at once */

/* Steps between integers, 0 where they would be too small or infinite; lo becomes the lower end. */
WIDE static void steps_of(const float *min, const float *max, size_t n, double most, bool symmetric,
                          double *restrict lo, double *restrict step) {
    for (size_t i = 0; i < n; i++) {
        double a = min[i] < 0 ? (double)min[i] : 0, b = max[i] > 0 ? (double)max[i] : 0;
        double far = -a > b ? -a : b;
        a = symmetric ? -far : a;
        b = symmetric ? far : b;
        double s = (b - a) / most;
        lo[i] = a;
        step[i] = s >= (double)FLT_MIN && s <= DBL_MAX ? s : 0;
    }
}

WIDE static void scales_of(const double *lo, const double *step, size_t n, IntRange r,
                           bool symmetric, float *restrict scale, double *restrict zp) {
    double least = (double)r.lo, most = (double)r.hi, middle = rint((double)(r.lo + r.hi) / 2);
    for (size_t i = 0; i < n; i++) {
        double s = step[i] > 0 ? step[i] : 1;
        double z = symmetric ? middle : rint(least - lo[i] / s);
        z = z > least ? z : least;
        z = z < most ? z : most;
        scale[i] = (float)s;
        zp[i] = step[i] > 0 ? z : 0;
    }
}

void params_from_ranges(const float *min, const float *max, size_t n, IntRange r, bool symmetric,
                        bool pow2, float *scale, int64_t *zp) {
    double lo[FEW], step[FEW], z[FEW];
    for (size_t left = n; left; left -= n, min += n, max += n, scale += n, zp += n) {
        n = left < FEW ? left : FEW;
        steps_of(min, max, n, (double)(r.hi - r.lo), symmetric, lo, step);
        for (size_t i = 0; pow2 && i < n; i++)
            step[i] = step[i] > 0 ? (double)params_pow2_at_least(step[i]) : 0;
        scales_of(lo, step, n, r, symmetric, scale, z);
        for (size_t i = 0; i < n; i++)
            zp[i] = (int64_t)z[i];
    }
}

void params_from_minmax(float min, float max, IntRange r, bool symmetric, bool pow2, float *scale,
                        int64_t *zp) {
    params_from_ranges(&min, &max, 1, r, symmetric, pow2, scale, zp);
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
