#include "passes/quantize/weight_groups.h"
#include "support/parallel.h"

static size_t blocks_of(const Quant *q, const Tensor *t, int i) {
    return (size_t)((t->dims[q->axis[i]] + q->block[i] - 1) / q->block[i]);
}

size_t groups_count(const Quant *q, const Tensor *t) {
    size_t n = 1;
    for (int i = 0; i < q->n_axes; i++)
        n *= blocks_of(q, t, i);
    return n;
}

typedef struct Ranges {
    GroupParams *p;
    const Quant *q;
    const Tensor *t;
    float *min[PARALLEL_MOST], *max[PARALLEL_MOST]; /* by worker, then by group */
} Ranges;

static void widen_ranges(void *ctx, size_t from, size_t to, int worker) {
    const Ranges *g = ctx;
    const Tensor *t = g->t;
    for (QuantRuns r = quant_runs(g->q, t->rank, t->dims, from, to); quant_runs_next(&r);)
        (r.each ? row_ranges : row_range)(tensor_floats(t) + r.at, r.n, g->min[worker] + r.entry,
                                          g->max[worker] + r.entry);
}

static void params_of_ranges(void *ctx, size_t from, size_t to, int worker) {
    const Ranges *g = ctx;
    GroupParams *p = g->p;
    (void)worker;
    params_from_ranges(g->min[0] + from, g->max[0] + from, to - from, p->aim.range,
                       p->aim.symmetric, p->aim.pow2, p->scale + from, p->zp + from);
}

void groups_from_ranges(GroupParams *p, const Quant *q, const Tensor *t, Arena *a) {
    size_t n = groups_count(q, t);
    int workers = parallel_workers(t->count, PARALLEL_PART);
    Ranges g = {.p = p, .q = q, .t = t};
    for (int i = 0; i < workers; i++) { /* 0 is in every range */
        g.min[i] = NEW_ARRAY(a, float, n);
        g.max[i] = NEW_ARRAY(a, float, n);
    }
    parallel_for(t->count, PARALLEL_PART, widen_ranges, &g);
    for (int i = 1; i < workers; i++) {
        row_ranges(g.min[i], n, g.min[0], g.max[0]);
        row_ranges(g.max[i], n, g.min[0], g.max[0]);
    }
    parallel_for(n, PARALLEL_PART / 16, params_of_ranges, &g);
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
 * than the first one, and in the places behind the last group: how long params_fit searches must
 * not depend on what a pack held before. */
static void collect_pack(const Grid *g, const RowFloat *row, size_t k, size_t n, float *to) {
    size_t full = width(g, 0);
    if (full == 1 && n == ROW_LANES) {
        memcpy(to, row + k, ROW_LANES * sizeof *to); /* a length that is known: a few moves */
        return;
    }
    if (full == 1) {
        memcpy(to, row + k, n * sizeof *to);
        memset(to + n, 0, (ROW_LANES - n) * sizeof *to);
        return;
    }
    for (size_t j = 0; j < ROW_LANES; j++) {
        const RowFloat *x = row + (k + j) * full;
        size_t have = j < n ? width(g, k + j) : 0;
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
    params_fit(x, &p->aim, scale, zp);
    memcpy(p->scale + at, scale, n * sizeof *scale);
    memcpy(p->zp + at, zp, n * sizeof *zp);
}

typedef struct Fitting {
    GroupParams *p;
    const RowFloat *x;
    Grid g;
    size_t size, strips;        /* numbers in a pack, strips for an index of a */
    float *pack[PARALLEL_MOST]; /* by worker */
} Fitting;

/* Strips of groups, row by row of the grid. */
static void fit_strips(void *ctx, size_t from, size_t to, int worker) {
    const Fitting *f = ctx;
    const Grid *g = &f->g;
    for (size_t at = from; at < to; at++) {
        Strip s = {.i = at / f->strips,
                   .k = at % f->strips * STRIP,
                   .size = f->size,
                   .pack = f->pack[worker]};
        s.n = g->blocks_b - s.k < STRIP ? g->blocks_b - s.k : STRIP;
        size_t numbers = collect(g, f->x, &s);
        for (size_t j = 0; j < s.n; j += ROW_LANES)
            fit(f->p, (FitNumbers){s.pack + j / ROW_LANES * s.size, numbers, false},
                s.i * g->blocks_b + s.k + j, lanes(s.n - j));
    }
}

void groups_fit(GroupParams *p, const Quant *q, const Tensor *t, Arena *arena) {
    if (groups_count(q, t) == 1) {
        fit(p, (FitNumbers){tensor_floats(t), t->count, true}, 0, 1);
        return;
    }
    enum { PART = 1 << 14 }; /* elements, in whole strips: a pass over one takes many steps */
    Fitting f = {.p = p, .x = tensor_floats(t), .g = grid_of(q, t)};
    const Grid *g = &f.g;
    f.size =
        ROW_LANES * g->outer * g->middle * width(g, 0) * (g->block_a < g->a ? g->block_a : g->a);
    f.strips = (g->blocks_b + STRIP - 1) / STRIP;
    size_t n = g->blocks_a * f.strips, pack = f.size * (STRIP / ROW_LANES), part = 1 + PART / pack;
    for (int i = 0; i < parallel_workers(n, part); i++)
        f.pack[i] = NEW_ARRAY(arena, float, pack);
    parallel_for(n, part, fit_strips, &f);
}
