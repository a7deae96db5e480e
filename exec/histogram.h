/* A histogram of fixed size whose range grows with the data.
 *
 * The range is (-2^k, 2^k), half of the bins for each sign; when a larger element comes, bins merge
 * in pairs. Bins nest exactly, so the result does not depend on the order of the elements. It lives
 * where the caller puts it; nothing can fail. */
#ifndef QXC_EXEC_HISTOGRAM_H
#define QXC_EXEC_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BINS = 2048 }; /* of each sign; at least half of them in use */

typedef struct Histogram {
    bool has_range; /* false: only zeros so far */
    int exponent;   /* k */
    uint64_t zeros, total;
    uint64_t negative[HISTOGRAM_BINS]; /* bin i: -x in (i, i + 1] * width */
    uint64_t positive[HISTOGRAM_BINS]; /* bin i: x in [i, i + 1) * width */
} Histogram;

void histogram_add(Histogram *h, const float *x, size_t n); /* finite elements count, others not */
double histogram_width(const Histogram *h);                 /* of a bin */

/* The range that holds `percent` of the elements, bins counted whole; within [min, max]. The rest
 * is cut half from below and half from above; `symmetric`: from |x|, result (-t, t). onnxruntime's
 * percentile, but with the outer edge of the last bin where it takes the inner one. */
void histogram_percentile(const Histogram *h, double percent, bool symmetric, double min,
                          double max, double *lo, double *hi);
/* The threshold t for |x| whose clipped distribution, seen through 128 levels, diverges least
 * (Kullback-Leibler) from the original: TensorRT's entropy calibration. */
double histogram_entropy(const Histogram *h);
/* The range with the least expected squared error at 256 levels: clipping error of each bin plus
 * step^2 / 12 for what is inside. */
void histogram_mse(const Histogram *h, bool symmetric, double min, double max, double *lo,
                   double *hi);

#endif
