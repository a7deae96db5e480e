/* Parameters by least squares, for ROW_LANES groups of numbers at once.
 *
 * Scale s takes the numbers x to integers q, and t q stands for x. The error is
 *
 *   E(t) = sum (x - t q)^2 + a (sum x (x - t q))^2 / sum x^2
 *
 * whose second part is that of the error which lies along x, and t = (1 + a) X / (Q + a X^2 / S)
 * makes it smallest for these q, with X = sum x q, Q = sum q^2 and S = sum x^2; without `a` that is
 * X / Q. A step of the search is one pass over the numbers for X and Q, and gives both t and what
 * it is worth; t may then take some x to other q, which is the next step. */
#include "passes/params.h"
#include "support/wide.h"

#include <float.h>
#include <math.h>

typedef struct Groups {
    const RowFloat *x;
    size_t n;              /* whole rows */
    float rest[ROW_LANES]; /* of one group: what fills no row, and zeros */
    bool one;
    FitAim aim;
    float min[ROW_LANES], max[ROW_LANES];
    float squares[ROW_LANES]; /* sum x^2 */
} Groups;

/* Parameters for each, and how they serve. */
typedef struct Lanes {
    float scale[ROW_LANES], lo[ROW_LANES], hi[ROW_LANES]; /* limits less the zero point */
    float worth[ROW_LANES];                               /* sum x^2 less the error */
    float next[ROW_LANES];                                /* scale that suits the integers best */
} Lanes;

/* The parameters of part `f` of the range; one bit is all on one side of 0 or on the other. */
static void from_range(const Groups *g, double f, bool below, Lanes *t) {
    IntRange r = g->aim.range;
    bool one_bit = r.hi - r.lo == 1;
    float min[ROW_LANES], max[ROW_LANES];
    int64_t zp[ROW_LANES];
    for (size_t k = 0; k < ROW_LANES; k++) {
        min[k] = one_bit && !below ? 0 : (float)((double)g->min[k] * f);
        max[k] = one_bit && below ? 0 : (float)((double)g->max[k] * f);
    }
    params_from_ranges(min, max, ROW_LANES, r, g->aim.symmetric && !one_bit, g->aim.pow2, t->scale,
                       zp);
    for (size_t k = 0; k < ROW_LANES; k++) {
        t->lo[k] = (float)(r.lo - zp[k]);
        t->hi[k] = (float)(r.hi - zp[k]);
    }
}

/* The same from those of the whole range, as long as scales are no powers of two: the zero point
 * stays. */
WIDE static void from_whole(const Lanes *whole, float f, Lanes *t) {
    for (size_t k = 0; k < ROW_LANES; k++) {
        float s = whole->scale[k] * f;
        t->scale[k] = s >= FLT_MIN ? s : whole->scale[k];
    }
}

/* Each entry the sum of all where they are parts of one group. */
static void join(const Groups *g, double *part) {
    double sum = 0;
    for (size_t k = 0; g->one && k < ROW_LANES; k++)
        sum += part[k];
    for (size_t k = 0; g->one && k < ROW_LANES; k++)
        part[k] = sum;
}

typedef void Products(const RowFloat *x, size_t n, const float *scale, const float *lo,
                      const float *hi, double *xq, double *qq);

/* Judges each scale by the integers that it rounds to, and finds the one that suits them best. By
 * squares alone that one is no worse with integers of its own, and takes over at once; where more
 * counts it has to be judged by them first. */
WIDE static void suit(const Groups *g, Products *products, Lanes *t) {
    double xq[ROW_LANES] = {0}, qq[ROW_LANES] = {0};
    products(g->x, g->n, t->scale, t->lo, t->hi, xq, qq);
    if (g->one)
        products(g->rest, 1, t->scale, t->lo, t->hi, xq, qq);
    join(g, xq);
    join(g, qq);
#pragma GCC unroll 1
    for (size_t k = 0; k < ROW_LANES; k++) {
        double squares = (double)g->squares[k];
        /* Beyond the range of float it is not known what lies along the numbers. */
        double a = squares >= FLT_MIN && squares <= FLT_MAX ? g->aim.along : 0;
        double all = qq[k] + (a > 0 ? a * xq[k] * xq[k] / squares : 0);
        float s = (float)((1 + a) * xq[k] / (all > 0 ? all : 1));
        bool takes = !g->aim.pow2 && s >= FLT_MIN && s <= FLT_MAX;
        t->next[k] = takes ? s : t->scale[k];
        t->scale[k] = g->aim.along > 0 ? t->scale[k] : t->next[k];
        double by = (double)t->scale[k], missing = squares - by * xq[k];
        double more = a > 0 ? a * missing * missing / squares : 0;
        t->worth[k] = (float)(by * (2 * xq[k] - by * qq[k]) - more);
    }
}

/* Takes over what serves better; whether anything did. */
WIDE static bool keep_better(Lanes *best, const Lanes *t) {
    int any = 0;
#pragma GCC unroll 1
    for (size_t k = 0; k < ROW_LANES; k++) {
        bool better = t->worth[k] > best->worth[k];
        best->scale[k] = better ? t->scale[k] : best->scale[k];
        best->lo[k] = better ? t->lo[k] : best->lo[k];
        best->hi[k] = better ? t->hi[k] : best->hi[k];
        best->worth[k] = better ? t->worth[k] : best->worth[k];
        best->next[k] = better ? t->next[k] : best->next[k];
        any |= better;
    }
    return any;
}

/* Whether in each group the largest number alone loses more, when it is cut to part `f` of the
 * range, than the best loses in all. The last integer may miss that part by half a step. This stays
 * so as f falls. */
WIDE static bool cuts_too_much(const Groups *g, float f, const Lanes *whole, const Lanes *best) {
    int all = 1;
    for (size_t k = 0; k < ROW_LANES; k++) {
        float largest = g->max[k] > -g->min[k] ? g->max[k] : -g->min[k];
        float lost = largest * (1 - f) - whole->scale[k] * f / 2;
        float error = g->squares[k] - best->worth[k];
        all &= (lost > 0 && lost * lost > error) || g->squares[k] == 0;
    }
    return all;
}

/* Whether the scales of `t`, or those that suit their integers best, are better than the best. */
static bool improve_by(const Groups *g, Lanes *t, Lanes *best) {
    suit(g, row_products, t);
    bool better = keep_better(best, t);
    if (g->aim.along == 0)
        return better;
    memcpy(t->scale, t->next, sizeof t->scale);
    suit(g, row_products, t);
    return keep_better(best, t) || better;
}

/* The best among parts of the range. */
static void search(const Groups *g, bool below, Lanes *best) {
    enum { STEPS = 16 };
    Lanes whole, t;
    from_range(g, 1, below, &whole);
    t = whole;
    improve_by(g, &t, best);
    for (int i = 1; i < STEPS; i++) {
        float f = 1 - 0.8F * (float)i / (float)STEPS;
        if (g->aim.range.hi - g->aim.range.lo > 1 && !g->aim.pow2 &&
            cuts_too_much(g, f, &whole, best))
            break;
        t = whole;
        if (g->aim.pow2)
            from_range(g, (double)f, below, &t);
        else
            from_whole(&whole, f, &t);
        improve_by(g, &t, best);
    }
}

/* The scales that fit those integers best to which the best ones yet round the numbers. */
static void improve(const Groups *g, Lanes *best) {
    enum { ROUNDS = 2 };
    bool better = true;
    for (int i = 0; better && i < ROUNDS; i++) {
        Lanes t = *best;
        if (g->aim.along > 0)
            memcpy(t.scale, best->next, sizeof t.scale);
        better = improve_by(g, &t, best);
    }
    if (g->aim.along == 0)
        suit(g, row_products_exact, best);
}

/* The smallest and the largest of all are those of each. */
static void join_spans(Groups *g) {
    float min = 0, max = 0;
    row_range(g->min, ROW_LANES, &min, &max);
    row_range(g->max, ROW_LANES, &min, &max);
    for (size_t k = 0; k < ROW_LANES; k++) {
        g->min[k] = min;
        g->max[k] = max;
    }
}

static Groups groups_of(FitNumbers x, const FitAim *aim) {
    Groups g = {.x = x.x, .n = x.n, .one = x.one, .aim = *aim};
    double squares[ROW_LANES] = {0};
    if (x.one) {
        g.n = x.n / ROW_LANES;
        for (size_t i = g.n * ROW_LANES; i < x.n; i++)
            g.rest[i % ROW_LANES] = x.x[i];
        row_spans(g.rest, 1, g.min, g.max, squares);
    }
    row_spans(g.x, g.n, g.min, g.max, squares);
    join(&g, squares);
    for (size_t k = 0; k < ROW_LANES; k++)
        g.squares[k] = (float)squares[k];
    if (x.one)
        join_spans(&g);
    return g;
}

void params_fit(FitNumbers x, const FitAim *aim, float *scale, int64_t *zp) {
    Groups g = groups_of(x, aim);
    IntRange r = aim->range;
    Lanes best;
    for (size_t k = 0; k < ROW_LANES; k++)
        best.worth[k] = -INFINITY;
    search(&g, false, &best);
    if (r.hi - r.lo == 1)
        search(&g, true, &best);
    if (!aim->pow2)
        improve(&g, &best);
    memcpy(scale, best.scale, sizeof best.scale);
    for (size_t k = 0; k < ROW_LANES; k++)
        zp[k] = r.lo - (int64_t)best.lo[k];
}
