/* See passes/quantize/refine.h. */
#include "passes/quantize/refine.h"
#include "support/rows.h"

#include <float.h>
#include <math.h>

enum { ROUNDS = 3 };

/* How far one step may take a scale: a block of integers that hardly say anything is no reason. */
static const double FARTHEST = 3;

typedef struct Channel {
    const Refine *r;
    size_t at, terms; /* `at`: which channel */
    const double *aim;
    double *q;    /* [terms]: integers less their zero points */
    double *left; /* [terms]: G (aim - s q) */
} Channel;

typedef struct Block {
    size_t from, to; /* terms */
    size_t entry;
    double lo, hi; /* integers less the zero point */
} Block;

size_t refine_scratch(size_t terms) {
    return 2 * terms;
}

bool refine_takes_scales(const WeightMatrix *w) {
    const Quant *q = w->quant;
    bool each = w->channels == 1;
    for (int i = 0; i < q->n_axes; i++)
        each = each || (q->axis[i] == w->dim && q->block[i] <= 1);
    return each && q->n_scale >= w->channels && q->scale_type == ELEM_FLOAT;
}

static size_t entry_of(const WeightMatrix *w, size_t channel, size_t term) {
    const Quant *q = w->quant;
    return q->n_scale == 1
               ? 0
               : quant_index(q, w->data->rank, w->data->dims, weight_at(w, channel, term));
}

static double scale_at(const Refine *r, size_t entry) {
    return (double)(r->scale ? r->scale[entry] : quant_scale(r->w->quant, entry));
}

/* The terms from `from` on that share a scale. */
static Block block_at(const Channel *c, size_t from) {
    const WeightMatrix *w = c->r->w;
    Block b = {.from = from, .to = from + 1, .entry = entry_of(w, c->at, from)};
    while (b.to < c->terms && entry_of(w, c->at, b.to) == b.entry)
        b.to++;
    int64_t zp = quant_zp(w->quant, b.entry);
    b.lo = (double)(quant_lo(w->quant) - zp);
    b.hi = (double)(quant_hi(w->quant) - zp);
    return b;
}

static const double *row_of(const Channel *c, size_t term) {
    return c->r->gram + term * c->terms;
}

/* The scale that suits the integers of the block, as the others are. */
static void suit_scale(Channel *c, const Block *b) {
    double s = scale_at(c->r, b->entry), asked = 0, square = 0;
    for (size_t i = b->from; i < b->to; i++) {
        asked += c->q[i] * c->left[i];
        square += c->q[i] * row_dot(row_of(c, i) + b->from, c->q + b->from, b->to - b->from);
    }
    double least = c->r->least ? c->r->least[c->at] : 0;
    float to = (float)fmax(s + asked / square, least);
    if (!(square > 0) || !(to >= FLT_MIN && (double)to > s / FARTHEST && (double)to < s * FARTHEST))
        return;
    c->r->scale[b->entry] = to;
    for (size_t i = b->from; i < b->to; i++)
        if (c->q[i] != 0)
            row_add_scaled(row_of(c, i), c->terms, (s - (double)to) * c->q[i], c->left);
}

/* The integer of each term, as the others are. */
static void suit_integers(Channel *c, const Block *b) {
    double s = scale_at(c->r, b->entry);
    for (size_t i = b->from; i < b->to; i++) {
        double g = row_of(c, i)[i];
        double to = fmin(fmax(rint(c->q[i] + c->left[i] / (g * s)), b->lo), b->hi);
        if (!(g > 0) || !isfinite(to) || to == c->q[i])
            continue;
        row_add_scaled(row_of(c, i), c->terms, (c->q[i] - to) * s, c->left);
        c->q[i] = to;
    }
}

static void look_anew(Channel *c) {
    memset(c->left, 0, c->terms * sizeof *c->left);
    for (size_t at = 0; at < c->terms;) {
        Block b = block_at(c, at);
        double s = scale_at(c->r, b.entry);
        for (; at < b.to; at++)
            row_add_scaled(row_of(c, at), c->terms, c->aim[at] - s * c->q[at], c->left);
    }
}

static void improve(Channel *c, bool integers) {
    for (size_t at = 0; at < c->terms;) {
        Block b = block_at(c, at);
        if (c->r->scale)
            suit_scale(c, &b);
        if (integers)
            suit_integers(c, &b);
        at = b.to;
    }
}

static void read_integers(Channel *c, const float *numbers) {
    for (size_t at = 0; at < c->terms;) {
        Block b = block_at(c, at);
        double s = scale_at(c->r, b.entry);
        for (; at < b.to; at++)
            c->q[at] = rint((double)numbers[at] / s);
    }
}

static void write_numbers(const Channel *c, float *numbers) {
    for (size_t at = 0; at < c->terms;) {
        Block b = block_at(c, at);
        float s = (float)scale_at(c->r, b.entry);
        for (; at < b.to; at++)
            numbers[at] = (float)c->q[at] * s;
    }
}

void refine_channel(const Refine *r, size_t channel, const double *aim, float *numbers,
                    double *scratch) {
    size_t k = r->w->terms;
    Channel c = {.r = r, .at = channel, .terms = k, .aim = aim, .q = scratch, .left = scratch + k};
    read_integers(&c, numbers);
    look_anew(&c);
    for (int i = 0; i < ROUNDS; i++)
        improve(&c, true);
    improve(&c, false);
    write_numbers(&c, numbers);
}
