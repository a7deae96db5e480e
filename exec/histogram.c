/* See exec/histogram.h. */
#include <math.h>
#include <string.h>

#include "exec/histogram.h"

enum {
    MANTISSA_BITS = 23,
    DROPPED_BITS = 15,                               /* of the mantissa: 8 remain */
    BINS = HISTOGRAM_OCTAVES * HISTOGRAM_PER_OCTAVE, /* of each sign */
};

static uint64_t *counter(Arena *a, Histogram *h, bool negative, uint32_t bin) {
    uint64_t **octave = &h->octaves[negative][bin / HISTOGRAM_PER_OCTAVE];
    if (!*octave)
        *octave = NEW_ARRAY(a, uint64_t, HISTOGRAM_PER_OCTAVE);
    return *octave + bin % HISTOGRAM_PER_OCTAVE;
}

void histogram_add(Arena *a, Histogram *h, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]))
            continue;
        h->total++;
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if (x[i] == 0)
            h->zeros++;
        else
            *counter(a, h, bits >> 31, (bits & 0x7fffffff) >> DROPPED_BITS) += 1;
    }
}

bool histogram_add_bin(Arena *a, Histogram *h, int64_t bin, uint64_t n) {
    if (bin < -BINS || bin > BINS || h->total > INT64_MAX || n > INT64_MAX - h->total)
        return false;
    h->total += n;
    if (bin == 0)
        h->zeros += n;
    else
        *counter(a, h, bin < 0, (uint32_t)((bin < 0 ? -bin : bin) - 1)) += n;
    return true;
}

/* Where bin `bin` of the positive numbers begins; the last one ends at 2^128. */
static double edge(uint32_t bin) {
    uint32_t bits = bin << DROPPED_BITS;
    float f;
    memcpy(&f, &bits, sizeof f);
    return isinf(f) ? ldexp(1, 128) : (double)f;
}

static void push(Bins *bins, Bin *at, Bin b) {
    at[bins->n++] = b;
    bins->total += (double)b.count;
}

static uint64_t count_of(const Histogram *h, bool negative, uint32_t bin) {
    const uint64_t *octave = h->octaves[negative][bin / HISTOGRAM_PER_OCTAVE];
    return octave ? octave[bin % HISTOGRAM_PER_OCTAVE] : 0;
}

static size_t count_used(const Histogram *h) {
    size_t n = h->zeros > 0;
    for (uint32_t i = 0; i < BINS; i++)
        n += (count_of(h, false, i) > 0) + (count_of(h, true, i) > 0);
    return n;
}

Bins histogram_bins(Arena *a, const Histogram *h) {
    Bin *at = NEW_ARRAY(a, Bin, count_used(h) + 1);
    Bins bins = {.at = at};
    for (uint32_t i = BINS; i-- > 0;)
        if (count_of(h, true, i))
            push(&bins, at, (Bin){-(int64_t)i - 1, -edge(i + 1), -edge(i), count_of(h, true, i)});
    if (h->zeros)
        push(&bins, at, (Bin){0, 0, 0, h->zeros});
    for (uint32_t i = 0; i < BINS; i++)
        if (count_of(h, false, i))
            push(&bins, at, (Bin){(int64_t)i + 1, edge(i), edge(i + 1), count_of(h, false, i)});
    return bins;
}
