/* Rounds weights up or down so that the errors of a sum cancel on calibration data.
 *
 * Rounding each weight to the nearest integer is best for numbers that have nothing to do with each
 * other. What meets the weights of a channel does: with G = E[x x^T] the error of its sum is
 * (w - q)^T G (w - q), and one weight's error can be made up for by the next. Exactly the best q is
 * a closest vector in a lattice; this takes Babai's (1986): with G = L L^T, from the last weight to
 * the first, each is rounded after what the errors so far ask of it has been added. It is what GPTQ
 * does (Frantar, Ashkboos, Hoefler, Alistarh 2022). The numbers that vary most come first, and a
 * hundredth of the mean variance is added to each, so that few samples decide nothing alone. A
 * channel that would come out worse than by plain rounding keeps that.
 *
 * Where the node has a bias, G is the covariance, and the bias takes what is left on average. The
 * weights become numbers of their grid, so that everything after rounds them to themselves. A
 * weight that several nodes share has no one kind of data: it stays, and so does one with too many
 * terms. */
#include "passes/choice.h"
#include "passes/edit.h"
#include "passes/weight_error.h"

#include <math.h>
#include <stdlib.h>

static const char PASS_NAME[] = "adaround";

static const double DAMPING = 0.01; /* of the mean variance */

typedef struct Varying {
    double variance;
    size_t term;
} Varying;

typedef struct Rounding {
    PassContext *c;
    UniqueNames *names;
    Uses *uses;
    Arena *arena;
    double *l; /* [terms, terms], lower triangle; used again for each group */
    size_t l_size;
    size_t *order; /* position -> term, ascending by variance */
    Varying *sorted;
    double *asked; /* by position */
    size_t cap;
} Rounding;

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

static void make_room(Rounding *by, size_t k) {
    if (k * k > by->l_size) {
        by->l = NEW_ARRAY(by->arena, double, k *k);
        by->l_size = k * k;
    }
    if (k > by->cap) {
        by->order = NEW_ARRAY(by->arena, size_t, k);
        by->sorted = NEW_ARRAY(by->arena, Varying, k);
        by->asked = NEW_ARRAY(by->arena, double, k);
        by->cap = k;
    }
}

static void sort_terms(Rounding *by, const MacData *d, size_t group, bool centered) {
    size_t k = d->terms;
    Varying *v = by->sorted;
    for (size_t i = 0; i < k; i++)
        v[i] = (Varying){gram_of(d, group, i, i, centered), i};
    qsort(v, k, sizeof *v, by_variance);
    for (size_t i = 0; i < k; i++)
        by->order[i] = v[i].term;
}

/* Cholesky's decomposition L of the permuted matrix. False where nothing varies. */
static bool decompose(Rounding *by, const MacData *d, size_t group, bool centered) {
    size_t k = d->terms;
    double *l = by->l, sum = 0;
    sort_terms(by, d, group, centered);
    for (size_t i = 0; i < k; i++)
        sum += gram_of(d, group, i, i, centered);
    double damping = DAMPING * sum / (double)k;
    if (!(damping > 0) || !isfinite(damping))
        return false;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j <= i; j++) {
            double g = gram_of(d, group, by->order[i], by->order[j], centered);
            for (size_t t = 0; t < j; t++)
                g -= l[i * k + t] * l[j * k + t];
            l[i * k + j] = i == j ? sqrt(fmax(g, 0) + damping) : g / l[j * k + j];
        }
    return true;
}

/* ---- rounding ---- */

/* Rounds one channel into `out`, each weight with or without what the errors so far ask of it.
 * Returns (w - q)^T G (w - q). */
static double round_channel(Rounding *by, const WeightMatrix *w, size_t channel, bool plainly,
                            float *out) {
    size_t k = w->terms;
    double *asked = by->asked, sum = 0; /* by position: sum of L[j,i] (w[j] - q[j]) */
    memset(asked, 0, k * sizeof *asked);
    for (size_t i = k; i-- > 0;) {
        size_t at = weight_at(w, channel, by->order[i]);
        const double *row = by->l + i * k;
        double x = tensor_float(w->data, at);
        out[at] = weight_rounded(w, at, plainly ? x : x + asked[i] / row[i]);
        double e = x - (double)out[at], part = row[i] * e + asked[i];
        sum += part * part;
        for (size_t j = 0; j < i; j++)
            asked[j] += row[j] * e;
    }
    return sum;
}

static void round_group(Rounding *by, const WeightMatrix *w, size_t group, float *out,
                        float *kept) {
    for (size_t c = group * w->per_group; c < (group + 1) * w->per_group; c++) {
        double plain = round_channel(by, w, c, true, kept);
        if (round_channel(by, w, c, false, out) <= plain)
            continue;
        for (size_t t = 0; t < w->terms; t++)
            out[weight_at(w, c, t)] = kept[weight_at(w, c, t)];
    }
}

static void set_weights(Rounding *by, Node *n, const float *numbers) {
    int at = n->def->quant.weight;
    Value *old = n->in[at];
    float *out;
    Value *v =
        edit_new_floats(n->graph, by->names, old->name, old->data->rank, old->data->dims, &out);
    memcpy(out, numbers, old->data->count * sizeof *out);
    v->type = type_tilde(v->type, old->type.quant);
    value_from(v, old, PASS_NAME);
    n->in[at] = v;
}

static void correct_bias(Rounding *by, Node *n, const WeightMatrix *w, const MacData *data,
                         const float *numbers, double *bias) {
    for (size_t c = 0; c < w->channels; c++)
        bias[c] -= weight_mean_error(w, data, c, numbers);
    edit_set_bias(n, by->names, bias, w->channels, PASS_NAME, n);
}

static void round_node(void *ctx, Node *n, const MacData *data) {
    Rounding *by = ctx;
    WeightMatrix w;
    const Use *use;
    if (!weight_matrix(n, data, by->c->d, &w))
        return;
    bool can = data->gram && uses_of(by->uses, n->in[n->def->quant.weight], &use) == 1;
    double *bias =
        n->def->quant.bias && !choice_float_bias(by->c, n) ? edit_bias(n, w.channels) : NULL;
    float *numbers = NEW_ARRAY(by->arena, float, w.data->count);
    float *kept = NEW_ARRAY(by->arena, float, w.data->count);
    if (can)
        make_room(by, w.terms);
    for (size_t g = 0; g < data->groups; g++) {
        if (can && decompose(by, data, g, bias != NULL)) {
            round_group(by, &w, g, numbers, kept);
            continue;
        }
        for (size_t c = g * w.per_group; c < (g + 1) * w.per_group; c++)
            for (size_t t = 0; t < w.terms; t++) {
                size_t at = weight_at(&w, c, t);
                numbers[at] = weight_rounded(&w, at, tensor_float(w.data, at));
            }
    }
    if (bias)
        correct_bias(by, n, &w, data, numbers, bias);
    if (can)
        set_weights(by, n, numbers);
}

bool pass_adaround(Module *m, PassContext *c) {
    Rounding by = {.c = c, .names = unique_names_new(m), .uses = uses_new(m), .arena = m->arena};
    bool ok = mac_data(m, c, true, round_node, &by);
    edit_sweep(m);
    return ok;
}
