/* Parameters by least squares, for ROW_LANES groups of numbers at once. */
#include "passes/params.h"

#include <float.h>

typedef struct Groups {
    const RowFloat *x;
    size_t n;              /* whole rows */
    float rest[ROW_LANES]; /* of one group: what fills no row, and zeros */
    bool one;
    IntRange range;
    bool symmetric, pow2;
    float min[ROW_LANES], max[ROW_LANES];
} Groups;

/* Parameters for each, and how they serve. */
typedef struct Lanes {
    float scale[ROW_LANES], lo[ROW_LANES], hi[ROW_LANES]; /* limits less the zero point */
    int64_t zp[ROW_LANES];
    double error[ROW_LANES];
} Lanes;

/* The parameters of part `f` of the range; one bit is all on one side of 0 or on the other. */
static void from_range(const Groups *g, double f, bool below, Lanes *t) {
    IntRange r = g->range;
    bool one_bit = r.hi - r.lo == 1;
    for (size_t k = 0; k < ROW_LANES; k++) {
        float lo = (float)((double)g->min[k] * f), hi = (float)((double)g->max[k] * f);
        params_from_minmax(one_bit && !below ? 0 : lo, one_bit && below ? 0 : hi, r,
                           g->symmetric && !one_bit, g->pow2, &t->scale[k], &t->zp[k]);
        t->lo[k] = (float)(r.lo - t->zp[k]);
        t->hi[k] = (float)(r.hi - t->zp[k]);
    }
}

/* The same from those of the whole range, as long as scales are no powers of two: the zero point
 * stays. */
static void from_whole(const Lanes *whole, double f, Lanes *t) {
    for (size_t k = 0; k < ROW_LANES; k++) {
        float s = (float)((double)whole->scale[k] * f);
        t->scale[k] = s >= FLT_MIN ? s : whole->scale[k];
    }
}

/* Each entry the sum of all where they are parts of one group. */
static void join(const Groups *g, double *part) {
    double sum = 0;
    for (size_t k = 0; k < ROW_LANES; k++)
        sum += part[k];
    for (size_t k = 0; g->one && k < ROW_LANES; k++)
        part[k] = sum;
}

static void judge(const Groups *g, Lanes *t) {
    memset(t->error, 0, sizeof t->error);
    row_errors(g->x, g->n, t->scale, t->lo, t->hi, t->error);
    row_errors(g->rest, 1, t->scale, t->lo, t->hi, t->error);
    join(g, t->error);
}

/* Takes over what serves better; whether anything did. */
static bool keep_better(Lanes *best, const Lanes *t) {
    bool any = false;
    for (size_t k = 0; k < ROW_LANES; k++) {
        if (!(t->error[k] < best->error[k]))
            continue;
        best->scale[k] = t->scale[k];
        best->lo[k] = t->lo[k];
        best->hi[k] = t->hi[k];
        best->zp[k] = t->zp[k];
        best->error[k] = t->error[k];
        any = true;
    }
    return any;
}

/* Whether in each group the largest number alone loses more, when it is cut to part `f` of the
 * range, than the best loses in all. The last integer may miss that part by half a step. This stays
 * so as f falls. */
static bool cuts_too_much(const Groups *g, double f, const Lanes *t, const Lanes *best) {
    for (size_t k = 0; k < ROW_LANES; k++) {
        double largest = (double)(g->max[k] > -g->min[k] ? g->max[k] : -g->min[k]);
        double lost = largest * (1 - f) - (double)t->scale[k] / 2;
        if (best->error[k] > 0 && !(lost > 0 && lost * lost > best->error[k]))
            return false;
    }
    return true;
}

/* The scales that fit those integers best to which the best ones yet round the numbers. */
static void improve(const Groups *g, Lanes *best) {
    enum { ROUNDS = 8 };
    Lanes t = *best;
    bool better = true;
    for (int i = 0; better && i < ROUNDS; i++) {
        double xq[ROW_LANES] = {0}, qq[ROW_LANES] = {0};
        row_products(g->x, g->n, best->scale, best->lo, best->hi, xq, qq);
        row_products(g->rest, 1, best->scale, best->lo, best->hi, xq, qq);
        join(g, xq);
        join(g, qq);
        for (size_t k = 0; k < ROW_LANES; k++) {
            double s = qq[k] > 0 ? xq[k] / qq[k] : 0;
            bool good = s >= (double)FLT_MIN && s <= (double)FLT_MAX;
            t.scale[k] = good ? (float)s : best->scale[k];
        }
        judge(g, &t);
        better = keep_better(best, &t);
    }
}

static Groups groups_of(FitNumbers x, IntRange r, bool symmetric, bool pow2) {
    Groups g = {.x = x.x, .n = x.n, .one = x.one, .range = r, .symmetric = symmetric, .pow2 = pow2};
    if (x.one) {
        g.n = x.n / ROW_LANES;
        for (size_t i = g.n * ROW_LANES; i < x.n; i++)
            g.rest[i % ROW_LANES] = x.x[i];
    }
    for (size_t i = 0; i < g.n; i++)
        row_ranges(x.x + i * ROW_LANES, ROW_LANES, g.min, g.max);
    row_ranges(g.rest, ROW_LANES, g.min, g.max);
    if (x.one) {
        float min = 0, max = 0;
        row_range(g.min, ROW_LANES, &min, &max);
        row_range(g.max, ROW_LANES, &min, &max);
        for (size_t k = 0; k < ROW_LANES; k++) {
            g.min[k] = min;
            g.max[k] = max;
        }
    }
    return g;
}

void params_fit(FitNumbers x, IntRange r, bool symmetric, bool pow2, float *scale, int64_t *zp) {
    enum { STEPS = 32 };
    Groups g = groups_of(x, r, symmetric, pow2);
    bool one_bit = r.hi - r.lo == 1;
    Lanes best;
    for (int below = 0; below <= one_bit; below++) {
        Lanes whole, t;
        from_range(&g, 1, below, &whole);
        judge(&g, &whole);
        if (below)
            keep_better(&best, &whole);
        else
            best = whole;
        t = whole;
        for (int i = 1; i < STEPS; i++) {
            double f = 1 - 0.8 * i / (double)STEPS;
            if (!one_bit && !pow2 && cuts_too_much(&g, f, &t, &best))
                break;
            if (pow2)
                from_range(&g, f, below, &t);
            else
                from_whole(&whole, f, &t);
            judge(&g, &t);
            keep_better(&best, &t);
        }
    }
    if (!pow2)
        improve(&g, &best);
    memcpy(scale, best.scale, sizeof best.scale);
    memcpy(zp, best.zp, sizeof best.zp);
}
