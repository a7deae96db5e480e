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

/* Groups [i, k] to [i, k + n - 1], those of index i of a side by side in packs of ROW_LANES that
 * hold `size` numbers each. */
typedef struct Strip {
    size_t i, k, n;
    size_t size;
    float *pack;
} Strip;

enum { STRIP = 4 * ROW_LANES }; /* groups in a strip: rows of a matrix lie far apart in memory */

/* Numbers of one row of groups k to k + n - 1, at most ROW_LANES; zeros where blocks are shorter
 * than the first one. Places behind the last group keep what they had. */
static void collect_pack(const Grid *g, const RowFloat *row, size_t k, size_t n, float *to) {
    size_t full = width(g, 0);
    if (full == 1) {
        memcpy(to, row + k, n * sizeof *to);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        const RowFloat *x = row + (k + j) * full;
        size_t have = width(g, k + j);
        for (size_t i = 0; i < full; i++)
            to[i * ROW_LANES + j] = i < have ? x[i] : 0;
    }
}

static size_t lanes(size_t left) {
    return left < ROW_LANES ? left : ROW_LANES;
}

static void collect_row(const Grid *g, const RowFloat *row, const Strip *s, size_t at) {
    float *to = s->pack + at * ROW_LANES;
    for (size_t j = 0; j < s->n; j += ROW_LANES, to += s->size)
        collect_pack(g, row, s->k + j, lanes(s->n - j), to);
}

/* Returns how many numbers of each group there are. */
static size_t collect(const Grid *g, const RowFloat *x, const Strip *s) {
    size_t from = s->i * g->block_a, full = width(g, 0), at = 0;
    size_t to = from + g->block_a < g->a ? from + g->block_a : g->a;
    for (size_t o = 0; o < g->outer; o++)
        for (size_t a = from; a < to; a++)
            for (size_t m = 0; m < g->middle; m++, at += full)
                collect_row(g, x + ((o * g->a + a) * g->middle + m) * g->b * g->inner, s, at);
    return at;
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
    Strip s = {.size = ROW_LANES * g.outer * g.middle * width(&g, 0) *
                       (g.block_a < g.a ? g.block_a : g.a)};
    s.pack = NEW_ARRAY(arena, float, s.size *(STRIP / ROW_LANES));
    for (; s.i < g.blocks_a; s.i++)
        for (s.k = 0; s.k < g.blocks_b; s.k += STRIP) {
            s.n = g.blocks_b - s.k < STRIP ? g.blocks_b - s.k : STRIP;
            size_t numbers = collect(&g, tensor_floats(t), &s);
            for (size_t j = 0; j < s.n; j += ROW_LANES)
                fit(p, (FitNumbers){s.pack + j / ROW_LANES * s.size, numbers, false},
                    s.i * g.blocks_b + s.k + j, lanes(s.n - j));
        }
}
