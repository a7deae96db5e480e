/* See exec/range.h. */
#include <math.h>

#include "exec/range.h"

static Range within(Range r, Range seen) {
    return (Range){fmax(r.low, seen.low), fmin(r.high, seen.high)};
}

static double largest(const RangeQuery *q) {
    return fmax(-q->seen.low, q->seen.high);
}

/* ---- percentile ---- */

/* Counts from the outside in until more than `cut` elements are passed: that bin's outer edge. */
static double edge_above(Bins b, double cut) {
    double passed = 0;
    for (size_t i = b.n; i-- > 0;)
        if ((passed += (double)b.at[i].count) > cut)
            return b.at[i].high;
    return 0;
}

static double edge_below(Bins b, double cut) {
    double passed = 0;
    for (size_t i = 0; i < b.n; i++)
        if ((passed += (double)b.at[i].count) > cut)
            return b.at[i].low;
    return 0;
}

/* The same from both ends at once, by size. */
static double edge_of_size(Bins b, double cut) {
    double passed = 0;
    size_t i = 0, k = b.n;
    while (i < k) {
        const Bin *below = &b.at[i], *above = &b.at[k - 1];
        bool from_below = -below->low > above->high;
        passed += (double)(from_below ? below->count : above->count);
        if (passed > cut)
            return from_below ? -below->low : above->high;
        i += from_below;
        k -= !from_below;
    }
    return 0;
}

Range range_percentile(Bins b, const RangeQuery *q, double percent) {
    double cut = b.total * (100 - percent) / 100;
    if (q->symmetric) {
        double t = fmin(edge_of_size(b, cut), largest(q));
        return (Range){-t, t};
    }
    return within((Range){edge_below(b, cut / 2), edge_above(b, cut / 2)}, q->seen);
}

/* ---- entropy ---- */

enum { PER_LEVEL = 8, MAX_LEVELS = 1024, OUTLIERS = 10000, ENOUGH = 16 };

/* Sizes of the elements in bins of one width: what lies across several is spread over them. Returns
 * how many elements are not 0, those beyond the last bin included. */
static double spread(Bins b, double width, double *sizes, size_t n) {
    double total = 0;
    for (size_t i = 0; i < b.n; i++) {
        if (b.at[i].number == 0)
            continue;
        total += (double)b.at[i].count;
        double from = fmin(fabs(b.at[i].low), fabs(b.at[i].high)) / width;
        double to = fmax(fabs(b.at[i].low), fabs(b.at[i].high)) / width;
        for (size_t k = (size_t)fmin(from, (double)n); k < n && (double)k < to; k++) {
            double part = fmin(to, (double)k + 1) - fmax(from, (double)k);
            sizes[k] += (double)b.at[i].count * part / (to - from);
        }
    }
    return total;
}

/* Divergence of the distribution, with all beyond bin n counted into bin n - 1, from its first n
 * bins as `levels` levels show them. */
static double divergence(const double *p, size_t n, double inside, double total, size_t levels) {
    double sum = 0;
    for (size_t level = 0; level < levels; level++) {
        size_t first = level * n / levels, end = (level + 1) * n / levels, used = 0;
        double mass = 0;
        for (size_t i = first; i < end; i++) {
            mass += p[i];
            used += p[i] > 0;
        }
        for (size_t i = first; i < end; i++) {
            double here = p[i] + (i == n - 1 ? total - inside : 0);
            double shown = p[i] > 0 ? mass / (double)used / inside : 1e-4 / total;
            if (here > 0)
                sum += here / total * log(here / total / shown);
        }
    }
    return sum;
}

Range range_entropy(Arena *a, Bins b, const RangeQuery *q) {
    /* a range of one sign has all levels for it */
    bool one_sided = !q->symmetric && (q->seen.low >= 0 || q->seen.high <= 0);
    int64_t all = q->levels < MAX_LEVELS ? q->levels : MAX_LEVELS;
    size_t levels = (size_t)(one_sided ? all : all / 2), n = levels * PER_LEVEL;
    double most = fmin(largest(q), 2 * edge_of_size(b, b.total / (double)OUTLIERS));
    double width = most / (double)n, inside = 0, least = INFINITY, best = most;
    if (!(width > 0) || levels < 2 || b.total < (double)n * (double)ENOUGH)
        return q->symmetric ? (Range){-largest(q), largest(q)} : q->seen;
    double *p = NEW_ARRAY(a, double, n);
    double total = spread(b, width, p, n);
    for (size_t i = 0; i < n; i++) {
        inside += p[i];
        if (i + 1 < n / 2 || !(inside > 0))
            continue;
        double d = divergence(p, i + 1, inside, total, levels);
        if (d <= least) {
            least = d;
            best = (double)(i + 1) * width;
        }
    }
    if (q->symmetric)
        return (Range){-best, best};
    return within((Range){-best, best}, q->seen);
}

/* ---- least squares ---- */

static double error_of(Bins b, Range r, int64_t levels) {
    double step = (r.high - r.low) / (double)(levels - 1), noise = step * step / 12, sum = 0;
    if (!(step > 0))
        return INFINITY;
    for (size_t i = 0; i < b.n; i++) {
        double x = (b.at[i].low + b.at[i].high) / 2, away;
        if (b.at[i].number == 0)
            continue; /* zero is always a level */
        if (x > r.high)
            away = (x - r.high) * (x - r.high);
        else if (x < r.low)
            away = (r.low - x) * (r.low - x);
        else if (b.at[i].high - b.at[i].low > step / 2)
            away = noise;
        else
            away = (x - rint(x / step) * step) * (x - rint(x / step) * step);
        sum += (double)b.at[i].count * away;
    }
    return sum;
}

/* The best of `r` with one end, or both, moved towards 0. */
static Range shrink(Bins b, const RangeQuery *q, Range r, bool low, bool high) {
    enum { STEPS = 100 };
    Range best = r;
    double least = error_of(b, r, q->levels);
    for (int i = 1; i < STEPS; i++) {
        double part = 1 - (double)i / (double)STEPS;
        Range tried = {low ? r.low * part : r.low, high ? r.high * part : r.high};
        double e = error_of(b, tried, q->levels);
        if (e < least) {
            least = e;
            best = tried;
        }
    }
    return best;
}

Range range_mse(Bins b, const RangeQuery *q) {
    if (q->symmetric)
        return shrink(b, q, (Range){-largest(q), largest(q)}, true, true);
    Range r = {fmin(q->seen.low, 0), fmax(q->seen.high, 0)};
    for (int round = 0; round < 2; round++) {
        if (r.high > 0)
            r = shrink(b, q, r, false, true);
        if (r.low < 0)
            r = shrink(b, q, r, true, false);
    }
    return r;
}
