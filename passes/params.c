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

static double pow2_at_least(double x) {
    return exp2(ceil(log2(x)));
}

void params_from_minmax(float min, float max, IntRange r, bool symmetric, bool pow2, float *scale,
                        int64_t *zp) {
    double lo = fmin((double)min, 0.0), hi = fmax((double)max, 0.0);
    if (symmetric) {
        hi = fmax(-lo, hi);
        lo = -hi;
    }
    double s = (hi - lo) / (double)(r.hi - r.lo);
    if (!(s >= (double)FLT_MIN) || !isfinite(s)) {
        *scale = 1.0F;
        *zp = 0;
        return;
    }
    if (pow2)
        s = pow2_at_least(s);
    *scale = (float)s;
    double z = symmetric ? rint((double)(r.lo + r.hi) / 2) : rint((double)r.lo - lo / s);
    *zp = (int64_t)fmin(fmax(z, (double)r.lo), (double)r.hi);
}

/* ---- least squares ---- */

typedef struct Fit {
    float scale;
    int64_t zp;
    double error, by_least_squares; /* the scale that fits these integers best */
} Fit;

static Fit judge(const float *x, size_t n, IntRange r, float scale, int64_t zp) {
    double error = 0, xq = 0, qq = 0;
    for (size_t i = 0; i < n; i++) {
        double q = (double)(quant_round(x[i], scale, zp, r.lo, r.hi) - zp);
        double away = (double)x[i] - q * (double)scale;
        error += away * away;
        xq += (double)x[i] * q;
        qq += q * q;
    }
    return (Fit){scale, zp, error, qq > 0 ? xq / qq : 0};
}

static void keep_better(Fit *best, Fit f) {
    if (f.error < best->error)
        *best = f;
}

static void improve(const float *x, size_t n, IntRange r, Fit *best) {
    for (int i = 0; i < 8; i++) {
        double s = best->by_least_squares, before = best->error;
        if (!(s >= (double)FLT_MIN) || !(s <= (double)FLT_MAX))
            return;
        keep_better(best, judge(x, n, r, (float)s, best->zp));
        if (best->error == before)
            return;
    }
}

/* Part `f` of the range; one bit is all on one side of 0 or all on the other. */
static void shrunk(float min, float max, double f, IntRange r, bool symmetric, bool pow2,
                   bool below, float *scale, int64_t *zp) {
    float lo = (float)((double)min * f), hi = (float)((double)max * f);
    if (r.hi - r.lo > 1)
        params_from_minmax(lo, hi, r, symmetric, pow2, scale, zp);
    else
        params_from_minmax(below ? lo : 0, below ? 0 : hi, r, false, pow2, scale, zp);
}

void params_fit(const float *x, size_t n, IntRange r, bool symmetric, bool pow2, bool fit,
                float *scale, int64_t *zp) {
    enum { STEPS = 32 };
    float min = 0, max = 0;
    for (size_t i = 0; i < n; i++) {
        min = fminf(min, x[i]);
        max = fmaxf(max, x[i]);
    }
    params_from_minmax(min, max, r, symmetric, pow2, scale, zp);
    if (!fit)
        return;
    Fit best = judge(x, n, r, *scale, *zp);
    for (int below = 0; below <= (r.hi - r.lo == 1); below++)
        for (int i = 0; i < STEPS; i++) {
            shrunk(min, max, 1 - 0.8 * i / (double)STEPS, r, symmetric, pow2, below, scale, zp);
            keep_better(&best, judge(x, n, r, *scale, *zp));
        }
    if (!pow2)
        improve(x, n, r, &best);
    *scale = best.scale;
    *zp = best.zp;
}

int32_t params_bias(double bias, float scale) {
    double q = rint(bias / (double)scale);
    if (isnan(q))
        return 0;
    return (int32_t)fmin(fmax(q, (double)INT32_MIN), (double)INT32_MAX);
}

double params_bias_min_scale(double max_abs_bias) {
    return 1.0001 * 2 * max_abs_bias / 4294967294.0;
}
