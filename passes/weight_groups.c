#include "passes/weight_groups.h"

static size_t blocks_of(const Quant *q, const Tensor *t, int i) {
    return (size_t)((t->dims[q->axis[i]] + q->block[i] - 1) / q->block[i]);
}

size_t groups_count(const Quant *q, const Tensor *t) {
    size_t n = 1;
    for (int i = 0; i < q->n_axes; i++)
        n *= blocks_of(q, t, i);
    return n;
}

void groups_from_ranges(GroupParams *p, const Quant *q, const Tensor *t, Arena *a) {
    size_t n = groups_count(q, t);
    float *min = NEW_ARRAY(a, float, n), *max = NEW_ARRAY(a, float, n); /* 0 is in every range */
    for (QuantRuns r = quant_runs(q, t->rank, t->dims, t->count); quant_runs_next(&r);)
        (r.each ? row_ranges : row_range)(tensor_floats(t) + r.at, r.n, min + r.entry,
                                          max + r.entry);
    for (size_t k = 0; k < n; k++)
        params_from_minmax(min[k], max[k], p->range, p->symmetric, p->pow2, &p->scale[k],
                           &p->zp[k]);
}

/* A tensor of at most two axes with parameters, as [outer, a, middle, b, inner]: an index of the
 * grid is a block of a, then one of b. */
typedef struct Grid {
    size_t outer, a, middle, b, inner;
    size_t block_a, block_b, blocks_a, blocks_b;
} Grid;

static size_t extent(const Tensor *t, int from, int to) {
    size_t n = 1;
    for (int i = from; i < to; i++)
        n *= (size_t)t->dims[i];
    return n;
}

static Grid grid_of(const Quant *q, const Tensor *t) {
    Grid g = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    int last = q->n_axes - 1, first = last - 1; /* of q's axes */
    int at_b = last < 0 ? 0 : q->axis[last], at_a = first < 0 ? -1 : q->axis[first];
    if (last >= 0) {
        g.b = (size_t)t->dims[at_b];
        g.block_b = (size_t)q->block[last];
        g.blocks_b = blocks_of(q, t, last);
    }
    if (first >= 0) {
        g.a = (size_t)t->dims[at_a];
        g.block_a = (size_t)q->block[first];
        g.blocks_a = blocks_of(q, t, first);
        g.outer = extent(t, 0, at_a);
    }
    g.middle = extent(t, at_a + 1, at_b);
    g.inner = extent(t, last < 0 ? 0 : at_b + 1, t->rank);
    return g;
}

/* Elements along b, and inside of it, in block k of it. */
static size_t width(const Grid *g, size_t k) {
    size_t from = k * g->block_b, left = g->b - from;
    return (left < g->block_b ? left : g->block_b) * g->inner;
}

static void put_lane(const RowFloat *x, size_t n, size_t full, float *to) {
    for (size_t i = 0; i < full; i++)
        to[i * ROW_LANES] = i < n ? x[i] : 0;
}

/* The numbers of groups [i, k] to [i, k + n - 1] side by side, zeros where blocks are shorter
 * than the first one. Places from n on keep what they had. */
static void collect(const Grid *g, const RowFloat *x, size_t i, size_t k, size_t n, float *to) {
    size_t from_a = i * g->block_a, full = width(g, 0);
    size_t to_a = from_a + g->block_a < g->a ? from_a + g->block_a : g->a;
    for (size_t o = 0; o < g->outer; o++)
        for (size_t a = from_a; a < to_a; a++)
            for (size_t m = 0; m < g->middle; m++, to += full * ROW_LANES) {
                const RowFloat *row = x + ((o * g->a + a) * g->middle + m) * g->b * g->inner;
                for (size_t j = 0; full == 1 && j < n; j++)
                    to[j] = row[k + j];
                for (size_t j = 0; full > 1 && j < n; j++)
                    put_lane(row + (k + j) * full, width(g, k + j), full, to + j);
            }
}

static void fit(GroupParams *p, FitNumbers x, size_t at, size_t n) {
    float scale[ROW_LANES];
    int64_t zp[ROW_LANES];
    params_fit(x, p->range, p->symmetric, p->pow2, scale, zp);
    memcpy(p->scale + at, scale, n * sizeof *scale);
    memcpy(p->zp + at, zp, n * sizeof *zp);
}

void groups_fit(GroupParams *p, const Quant *q, const Tensor *t, Arena *arena) {
    if (groups_count(q, t) == 1) {
        fit(p, (FitNumbers){tensor_floats(t), t->count, true}, 0, 1);
        return;
    }
    Grid g = grid_of(q, t);
    size_t full = g.outer * g.middle * width(&g, 0); /* for each index of a */
    float *x = NEW_ARRAY(arena, float, ROW_LANES *full *(g.block_a < g.a ? g.block_a : g.a));
    for (size_t i = 0; i < g.blocks_a; i++)
        for (size_t k = 0; k < g.blocks_b; k += ROW_LANES) {
            size_t lanes = g.blocks_b - k < ROW_LANES ? g.blocks_b - k : ROW_LANES;
            size_t left = g.a - i * g.block_a, rows = left < g.block_a ? left : g.block_a;
            collect(&g, tensor_floats(t), i, k, lanes, x);
            fit(p, (FitNumbers){x, full * rows, false}, i * g.blocks_b + k, lanes);
        }
}
