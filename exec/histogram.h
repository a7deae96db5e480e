/* How often each size of number occurred: a counter for each sign, exponent and upper 8 bits of the
 * mantissa of a float, so that a bin is at most 1/256 of its own distance from 0 wide.
 *
 * Bins stand where they stand, whatever the data: an outlier makes no other bin coarser, the order
 * of the elements does not matter, and histograms of two runs add up to that of both. Octaves that
 * occur have 2 KiB each, from the arena that is given. Nothing can fail. */
#ifndef QXC_EXEC_HISTOGRAM_H
#define QXC_EXEC_HISTOGRAM_H

#include "support/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_OCTAVES = 255, HISTOGRAM_PER_OCTAVE = 256 };

typedef struct Histogram {
    uint64_t zeros, total;
    uint64_t *octaves[2][HISTOGRAM_OCTAVES]; /* [x < 0][exponent]; NULL: no such number */
} Histogram;

/* Finite elements count, others do not. */
void histogram_add(Arena *a, Histogram *h, const float *x, size_t n);

/* A bin by number: 0 holds the zeros, k > 0 the k-th of the positive numbers, -k its mirror image.
 * `n` more elements for it; false where there is no bin of that number, and where the histogram
 * would hold more than INT64_MAX elements. */
bool histogram_add_bin(Arena *a, Histogram *h, int64_t bin, uint64_t n);

typedef struct Bin {
    int64_t number;
    double low, high; /* its ends; equal for the zeros */
    uint64_t count;   /* at most INT64_MAX */
} Bin;

typedef struct Bins {
    const Bin *at;
    size_t n;
    double total;
} Bins;

/* The bins that hold something, in ascending order. */
Bins histogram_bins(Arena *a, const Histogram *h);

#endif
