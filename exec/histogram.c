/* See exec/histogram.h. */
#include <math.h>
#include <string.h>

#include "exec/histogram.h"

enum { LEVELS = 128, MSE_STEPS = 100 };

double histogram_width(const Histogram *h) {
    return h->has_range ? ldexp(1.0 / (double)HISTOGRAM_BINS, h->exponent) : 0;
}

static void merge(uint64_t *bins, int doublings) {
    for (int i = 0; i < HISTOGRAM_BINS; i++) {
        uint64_t n = bins[i];
        bins[i] = 0;
        bins[doublings > 30 ? 0 : i >> doublings] += n;
    }
}

static void cover(Histogram *h, int exponent) {
    if (h->has_range && exponent <= h->exponent)
        return;
    if (h->has_range) {
        merge(h->negative, exponent - h->exponent);
        merge(h->positive, exponent - h->exponent);
    }
    h->has_range = true;
    h->exponent = exponent;
}

void histogram_add(Histogram *h, const float *x, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i]) && fabsf(x[i]) > largest)
            largest = fabsf(x[i]);
    if (largest > 0) {
        int exponent;
        frexpf(largest, &exponent); /* largest < 2^exponent */
        cover(h, exponent);
    }
    double bins_per_unit = h->has_range ? ldexp(HISTOGRAM_BINS, -h->exponent) : 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        h->total++;
        double at = (double)x[i] * bins_per_unit; /* exact */
        if (x[i] == 0)
            h->zeros++;
        else if (at > 0)
            h->positive[(int)at]++;
        else
            h->negative[(int)ceil(-at) - 1]++;
    }
}

/* ---- ranges ---- */

/* Elements from the outside in until more than `cut` are passed: the outer edge of that bin. */
static double edge(const uint64_t *outer, const uint64_t *inner, uint64_t zeros, double cut,
                   double width) {
    double seen = 0;
    for (int i = HISTOGRAM_BINS - 1; i >= 0; i--)
        if ((seen += (double)outer[i]) > cut)
            return (i + 1) * width;
    if ((seen += (double)zeros) > cut)
        return 0;
    for (int i = 0; i < HISTOGRAM_BINS; i++)
        if ((seen += (double)inner[i]) > cut)
            return -i * width;
    return 0;
}

static void magnitudes(const Histogram *h, uint64_t *out) {
    for (int i = 0; i < HISTOGRAM_BINS; i++)
        out[i] = h->negative[i] + h->positive[i];
}

static void clamp_range(double min, double max, double *lo, double *hi) {
    *lo = *lo < min ? min : *lo;
    *hi = *hi > max ? max : *hi;
}

void histogram_percentile(const Histogram *h, double percent, bool symmetric, double min,
                          double max, double *lo, double *hi) {
    double cut = (double)h->total * (100 - percent) / 100, width = histogram_width(h);
    if (symmetric) {
        uint64_t both[HISTOGRAM_BINS], none[HISTOGRAM_BINS] = {0};
        magnitudes(h, both);
        double most = -min > max ? -min : max;
        *hi = edge(both, none, h->zeros, cut, width);
        *hi = *hi > most ? most : *hi;
        *lo = -*hi;
        return;
    }
    *hi = edge(h->positive, h->negative, h->zeros, cut / 2, width);
    *lo = -edge(h->negative, h->positive, h->zeros, cut / 2, width);
    clamp_range(min, max, lo, hi);
}

/* Divergence of the first n bins, all above clipped into the last, from the same through LEVELS
 * levels. */
static double divergence(const double *bins, int n, double outliers, double total) {
    double sum = 0;
    for (int level = 0; level < LEVELS; level++) {
        int first = (int)((int64_t)level * n / LEVELS),
            end = (int)((int64_t)(level + 1) * n / LEVELS);
        double mass = 0;
        int used = 0;
        for (int i = first; i < end; i++) {
            mass += bins[i];
            used += bins[i] > 0;
        }
        for (int i = first; i < end; i++) {
            double p = bins[i] + (i == n - 1 ? outliers : 0);
            if (p <= 0)
                continue;
            double q = bins[i] > 0 ? mass / used : 1e-4; /* nothing there once clipped */
            sum += p / total * log(p / q);
        }
    }
    return sum;
}

double histogram_entropy(const Histogram *h) {
    uint64_t counts[HISTOGRAM_BINS];
    double bins[HISTOGRAM_BINS], total = 0, inside = 0, least = INFINITY;
    int last = 0, best;
    magnitudes(h, counts);
    for (int i = 0; i < HISTOGRAM_BINS; i++) {
        bins[i] = (double)counts[i];
        total += bins[i];
        if (counts[i])
            last = i + 1;
    }
    best = last;
    for (int n = 0; n <= last; n++) {
        if (n >= LEVELS && (n % 8 == 0 || n == last)) {
            /* q of the clipped part normalises to `inside`, p to `total` */
            double d =
                divergence(bins, n, total - inside, total) + (inside > 0 ? log(inside / total) : 0);
            if (d < least) {
                least = d;
                best = n;
            }
        }
        if (n < HISTOGRAM_BINS)
            inside += bins[n];
    }
    return best * histogram_width(h);
}

static double clip_error(const Histogram *h, double lo, double hi) {
    double width = histogram_width(h), step = (hi - lo) / 255, noise = step * step / 12, sum = 0;
    for (int i = 0; i < HISTOGRAM_BINS; i++) {
        double x = (i + 0.5) * width;
        double above = x > hi ? (x - hi) * (x - hi) : noise;
        double below = -x < lo ? (lo + x) * (lo + x) : noise;
        sum += (double)h->positive[i] * above + (double)h->negative[i] * below;
    }
    return sum; /* zero is always on the grid */
}

void histogram_mse(const Histogram *h, bool symmetric, double min, double max, double *lo,
                   double *hi) {
    double most = -min > max ? -min : max, least;
    *lo = symmetric ? -most : (min < 0 ? min : 0);
    *hi = symmetric ? most : (max > 0 ? max : 0);
    least = clip_error(h, *lo, *hi);
    for (int round = 0; round < (symmetric ? 1 : 2); round++)
        for (int side = 0; side < (symmetric ? 1 : 2); side++) {
            double l = *lo, u = *hi; /* shrink the upper end, then the lower, then again */
            for (int i = 1; i < MSE_STEPS; i++) {
                double shrunk = 1 - (double)i / (double)MSE_STEPS;
                double tl = symmetric || side == 1 ? l * shrunk : *lo;
                double tu = symmetric || side == 0 ? u * shrunk : *hi;
                double e = clip_error(h, tl, tu);
                if (e < least) {
                    least = e;
                    *lo = tl;
                    *hi = tu;
                }
            }
        }
}
