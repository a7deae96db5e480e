/* See passes/quantize/rounder.h. */
#include "passes/quantize/rounder.h"
#include "passes/quantize/refine.h"
#include "support/parallel.h"
#include "support/rows.h"

#include <math.h>
#include <stdlib.h>

static const double DAMPING = 0.01; /* of the mean variance */

typedef struct Varying {
    double variance;
    size_t term;
} Varying;

enum { ROWS = 8, CHANNELS = 8 }; /* that are worked on at once: what they read is read once */

struct Rounder {
    Arena *arena;
    double *l; /* [terms, terms], lower triangle; used again for each group */
    size_t l_size;
    size_t *order; /* position -> term, ascending by variance */
    Varying *sorted;
    double *asked;          /* [CHANNELS, terms], by position */
    double *aim;            /* [CHANNELS, terms]: what the weights were best, if not rounded */
    double *own, *more;     /* [terms] */
    float *plain, *rounded; /* [CHANNELS, terms] */
    size_t cap;
    double *whole;   /* [terms, terms]: G of a group with its damping */
    double *scratch; /* [CHANNELS, refine_scratch(terms)] */
};

Rounder *rounder_new(Arena *a) {
    Rounder *by = NEW(a, Rounder);
    *by = (Rounder){.arena = a};
    return by;
}

/* ---- G = L L^T ---- */

static int by_variance(const void *x, const void *y) {
    const Varying *a = x, *b = y;
    if (a->variance != b->variance)
        return a->variance < b->variance ? -1 : 1;
    return a->term < b->term ? -1 : 1;
}

static double gram_of(const MacData *d, size_t group, size_t i, size_t j, bool centered) {
    size_t k = d->terms, row = i > j ? i : j, column = i > j ? j : i;
    const double *mean = d->mean + group * k;
    double g = d->gram[(group * k + row) * k + column] / d->rows;
    return centered ? g : g + mean[i] * mean[j];
}

static void make_room(Rounder *by, size_t k) {
    if (k * k > by->l_size) {
        by->l = NEW_ARRAY(by->arena, double, k *k);
        by->whole = NEW_ARRAY(by->arena, double, k *k);
        by->l_size = k * k;
    }
    if (k > by->cap) {
        by->order = NEW_ARRAY(by->arena, size_t, k);
        by->sorted = NEW_ARRAY(by->arena, Varying, k);
        by->asked = NEW_ARRAY(by->arena, double, CHANNELS *k);
        by->aim = NEW_ARRAY(by->arena, double, CHANNELS *k);
        by->own = NEW_ARRAY(by->arena, double, k);
        by->more = NEW_ARRAY(by->arena, double, k);
        by->plain = NEW_ARRAY(by->arena, float, CHANNELS *k);
        by->rounded = NEW_ARRAY(by->arena, float, CHANNELS *k);
        by->scratch = NEW_ARRAY(by->arena, double, CHANNELS *refine_scratch(k));
        by->cap = k;
    }
}

static void sort_terms(Rounder *by, const MacData *d, size_t group, bool centered) {
    size_t k = d->terms;
    Varying *v = by->sorted;
    for (size_t i = 0; i < k; i++)
        v[i] = (Varying){gram_of(d, group, i, i, centered), i};
    qsort(v, k, sizeof *v, by_variance);
    for (size_t i = 0; i < k; i++)
        by->order[i] = v[i].term;
}

/* Cholesky's decomposition L of the permuted matrix. False where nothing varies. */
static bool decompose(Rounder *by, const MacData *d, size_t group, bool centered) {
    size_t k = d->terms;
    double *l = by->l, sum = 0;
    sort_terms(by, d, group, centered);
    for (size_t i = 0; i < k; i++)
        sum += gram_of(d, group, i, i, centered);
    double damping = DAMPING * sum / (double)k;
    if (!(damping > 0) || !isfinite(damping))
        return false;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++)
            by->whole[i * k + j] = gram_of(d, group, i, j, centered) + (i == j ? damping : 0);
    for (size_t first = 0; first < k; first += ROWS) {
        size_t end = first + ROWS < k ? first + ROWS : k;
        for (size_t j = 0; j < end; j++)
            for (size_t i = j > first ? j : first; i < end; i++) {
                double g = gram_of(d, group, by->order[i], by->order[j], centered) -
                           row_dot(l + i * k, l + j * k, j);
                l[i * k + j] = i == j ? sqrt(fmax(g, 0) + damping) : g / l[j * k + j];
            }
    }
    return true;
}

/* ---- what the weights are to be ---- */

/* Where the operand x differs by e from that of the float model, weights w + G^-1 E[x e^T] w give
 * the sums of x that are nearest to w^T (x + e): what those before have lost is made up for as far
 * as x tells of it. Of k numbers fitted to `rows` sums, k / rows of what they explain is chance,
 * which is left out. `aim` by term. */
static void find_aim(Rounder *by, const WeightMatrix *w, const MacData *d, size_t channel,
                     bool centered, double *aim) {
    size_t k = w->terms, group = channel / w->per_group;
    const double *mean = d->mean + group * k, *real = d->real + group * k;
    double lost = 0, sure = fmax(0, 1 - (double)k / d->rows);
    for (size_t t = 0; t < k; t++) {
        aim[t] = by->own[t] = tensor_float(w->data, weight_at(w, channel, t));
        lost += centered ? 0 : (real[t] - mean[t]) * by->own[t];
    }
    if (!d->cross || sure == 0)
        return;
    for (size_t i = 0; i < k; i++) {
        size_t t = by->order[i];
        double v = row_dot(d->cross + (group * k + t) * k, by->own, k) / d->rows + mean[t] * lost;
        by->more[i] = (v - row_dot(by->l + i * k, by->more, i)) / by->l[i * k + i];
    }
    for (size_t i = k; i-- > 0;) {
        by->more[i] /= by->l[i * k + i];
        row_add_scaled(by->l + i * k, i, -by->more[i], by->more);
        aim[by->order[i]] += sure * by->more[i];
    }
}

/* ---- rounding ---- */

/* Rounds channels `first` to `first` + n - 1 into `out`, each weight with or without what the
 * errors so far ask of it; sum: (w - q)^T G (w - q) of each. */
static void round_channels(Rounder *by, const WeightMatrix *w, size_t first, size_t n, bool plainly,
                           float *out, double *sum) {
    size_t k = w->terms;
    memset(by->asked, 0, n * k * sizeof *by->asked); /* sum of L[j,i] (w[j] - q[j]) */
    memset(sum, 0, n * sizeof *sum);
    for (size_t i = k; i-- > 0;) {
        const double *row = by->l + i * k;
        for (size_t c = 0; c < n; c++) {
            size_t at = weight_at(w, first + c, by->order[i]);
            double *asked = by->asked + c * k, x = by->aim[c * k + by->order[i]];
            double alone = plainly ? tensor_float(w->data, at) : x + asked[i] / row[i];
            float q = weight_rounded(w, at, alone);
            double e = x - (double)q, part = row[i] * e + asked[i];
            out[c * k + by->order[i]] = q;
            sum[c] += part * part;
            row_add_scaled(row, i, e, asked);
        }
    }
}

/* Channels of one batch, beside each other. */
typedef struct Refining {
    Refine refine;
    const Rounder *by;
    size_t first;
} Refining;

static void refine_part(void *ctx, size_t from, size_t to, int worker) {
    const Refining *b = ctx;
    size_t k = b->refine.w->terms;
    (void)worker;
    for (size_t c = from; c < to; c++)
        refine_channel(&b->refine, b->first + c, b->by->aim + c * k, b->by->rounded + c * k,
                       b->by->scratch + c * refine_scratch(k));
}

/* Of what is rounded. */
static void refine_some(Rounder *by, const WeightMatrix *w, size_t first, size_t n, Rounded *out) {
    size_t k = w->terms;
    Refining b = {{w, by->whole, out->scale, out->least}, by, first};
    parallel_for(n, 1 + PARALLEL_PART / (4 * k * k), refine_part, &b);
    for (size_t c = 0; c < n; c++)
        for (size_t t = 0; t < k; t++)
            out->numbers[WAY_REFINED][weight_at(w, first + c, t)] = by->rounded[c * k + t];
}

static void round_group(Rounder *by, const WeightMatrix *w, const MacData *d, size_t group,
                        bool centered, Rounded *out) {
    double plain[CHANNELS], sum[CHANNELS];
    size_t k = w->terms, end = (group + 1) * w->per_group;
    for (size_t first = group * w->per_group; first < end; first += CHANNELS) {
        size_t n = end - first < CHANNELS ? end - first : CHANNELS;
        for (size_t c = 0; c < n; c++)
            find_aim(by, w, d, first + c, centered, by->aim + c * k);
        round_channels(by, w, first, n, true, by->plain, plain);
        round_channels(by, w, first, n, false, by->rounded, sum);
        for (size_t c = 0; c < n; c++) {
            const float *best = (sum[c] <= plain[c] ? by->rounded : by->plain) + c * k;
            for (size_t t = 0; t < k; t++)
                out->numbers[WAY_ROUNDED][weight_at(w, first + c, t)] = best[t];
            if (sum[c] > plain[c])
                memcpy(by->rounded + c * k, best, k * sizeof *best);
        }
        if (out->numbers[WAY_REFINED])
            refine_some(by, w, first, n, out);
    }
}

void rounder_round(Rounder *by, const WeightMatrix *w, const MacData *data, bool centered,
                   Rounded *out) {
    make_room(by, w->terms);
    for (size_t g = 0; g < data->groups; g++)
        if (decompose(by, data, g, centered))
            round_group(by, w, data, g, centered, out);
}
