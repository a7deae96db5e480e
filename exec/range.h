/* Which part of what a value was seen to be its integers should cover. Pure functions over the bins
 * of a histogram; nothing can fail. */
#ifndef QXC_EXEC_RANGE_H
#define QXC_EXEC_RANGE_H

#include "exec/histogram.h"

typedef struct Range {
    double low, high;
} Range;

/* What is asked: `seen` are the true extremes, which no answer goes beyond. */
typedef struct RangeQuery {
    Range seen;
    bool symmetric; /* the answer is (-t, t) */
    int64_t levels; /* integers that the range will be divided into: 256 for 8 bits */
} RangeQuery;

/* The range that holds `percent` of the elements, bins counted whole. The rest is cut half from
 * below and half from above; symmetric: from |x|. onnxruntime's percentile, but with the outer edge
 * of the last bin where it takes the inner one. */
Range range_percentile(Bins b, const RangeQuery *q, double percent);

/* The range |x| <= t, within what was seen, whose clipped distribution diverges least
 * (Kullback-Leibler) from the original when seen through as many levels as it will have: the idea
 * of TensorRT's entropy calibration (Migacz, "8-bit inference with TensorRT", GTC 2017). The
 * divergence knows frequencies and no distances, so that it gives up large elements that matter: t
 * is at least half of the largest size, or of twice the one below which 9,999 of 10,000 elements
 * are. With few elements (16 for each of 8 bins a level) it says nothing, and the answer is what
 * was seen. */
Range range_entropy(Arena *a, Bins b, const RangeQuery *q);

/* The range with the least expected squared error: distance to the range for what lies outside,
 * distance to the nearest level inside (step^2 / 12 in bins that are wider than half a step). */
Range range_mse(Bins b, const RangeQuery *q);

#endif
