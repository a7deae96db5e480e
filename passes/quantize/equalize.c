/* Scales channels so that those of one activation are about equally large, which one scale for all
 * of them then fits.
 *
 * A channel may be divided by any s > 0 that its readers multiply their weights by
 * (passes/channels.h): the same function in real numbers (Nagel, van Baalen, Blankevoort, Welling
 * 2019, section 4.1). As weights have a scale for each output channel, those before do not mind.
 * s[c] = cbrt(a[c] / r[c]^2) weighs a[c], the channel's largest activation on the calibration data
 * as a part of the largest of its value, against r[c], the largest weight that it meets
 * (SmoothQuant with 1/3: Xiao, Lin, Seznec, Wu, Demouth, Han 2023). Weights are known and other
 * data is not: the more a channel fills the range, the sooner it leaves it there. Where each
 * channel meets weights of its own (depthwise), s[c] = sqrt(a[c]), which all rounds together make
 * a[c]^(7/8). Where values are added or joined, a and r are the largest of all values and readers.
 *
 * Neighbours change each other's weights, so there are some rounds.
 *
 * By default only outliers are mended: where few channels of a value are GAP times as large as all
 * others, on few samples already, as in transformers (Dettmers, Lewis, Belkada,
 * Zettlemoyer 2022, section 4), those that meet in it are scaled, and no others. */
#include "passes/quantize/channel_scale.h"

#include <math.h>
#include <stdlib.h>

static const char PASS_NAME[] = "equalize";

enum {
    ROUNDS = 3,
    GAP = 4,            /* times as large as the next channel */
    FEW = 4,            /* one channel of so many is an outlier at most */
    CHANNELS_LEAST = 8, /* that a value has */
    SAMPLES_FIRST = 4,  /* to look for outliers in */
};

static const double MOST = 100; /* that one round scales by */

typedef struct Equalize {
    PassContext *c;
    Module *m;
    Channels channels;
    double **largest;  /* by value id: of each of its channels; NULL: not looked at */
    Value **looked_at; /* those that have one */
    size_t n_looked_at, cap_looked_at;
    double **weights;     /* by layer: as they are now */
    double *scale;        /* by class: s, over all rounds */
    double *active, *met; /* by class, of this round: a and r */
    bool *shared;         /* by class: some reader mixes channels */
    double *now;          /* by class: s of this round */
    bool *wanted;         /* by group: it is scaled; NULL: all are */
} Equalize;

/* ---- what the values are ---- */

static bool scalable(const Equalize *e, const ChannelSet *s) {
    size_t class;
    for (size_t i = 0; s && i < s->n; i++)
        if (channels_class(&e->channels, s->id[i], &class))
            return true;
    return false;
}

/* A value whose scale matters: not one that a clamp takes over. */
static void choose_value(Value *v, void *ctx) {
    Equalize *e = ctx;
    const ChannelSet *s = e->channels.of[v->id];
    const Use *use;
    size_t n = uses_of(e->channels.uses, v, &use);
    if (!scalable(e, s) ||
        (n == 1 && use->node && use->node->def && use->node->def->quant.kind == QUANT_CLAMP))
        return;
    e->largest[v->id] = NEW_ARRAY(e->m->arena, double, s->n);
    ARENA_PUSH(e->m->arena, e->looked_at, e->n_looked_at, e->cap_looked_at, v);
}

/* ---- scales ---- */

/* a: each channel as a part of the largest of its value as it is scaled now. */
static void find_active(Equalize *e) {
    for (size_t k = 0; k < e->n_looked_at; k++) {
        const ChannelSet *s = e->channels.of[e->looked_at[k]->id];
        const double *seen = e->largest[e->looked_at[k]->id];
        double most = 0;
        size_t class;
        for (size_t i = 0; i < s->n; i++) {
            channels_class(&e->channels, s->id[i], &class);
            most = fmax(most, seen[i] / e->scale[class]);
        }
        for (size_t i = 0; most > 0 && i < s->n; i++) {
            channels_class(&e->channels, s->id[i], &class);
            e->active[class] = fmax(e->active[class], seen[i] / e->scale[class] / most);
        }
    }
}

static LayerWeight weight_of(const Equalize *e, const ChannelLayer *l) {
    return layer_weight(l->node, layer_axis(e->channels.uses, l->node, e->c->d));
}

/* r: the largest weight that a channel meets, as a part of the largest of the same output. */
static void find_met(Equalize *e) {
    for (size_t k = 0; k < e->channels.n_layers; k++) {
        const ChannelLayer *l = &e->channels.layers[k];
        if (!l->in)
            continue;
        LayerWeight w = weight_of(e, l);
        const double *now = e->weights[k];
        double *row = NEW_ARRAY(e->m->arena, double, w.out);
        bool mixes = !(w.axis == 0 && w.tensor->dims[1] == 1 && w.in > 1);
        size_t class;
        for (size_t i = 0; i < w.tensor->count; i++)
            row[layer_out(&w, i)] = fmax(row[layer_out(&w, i)], fabs(now[i]));
        for (size_t i = 0; i < w.tensor->count; i++) {
            channels_class(&e->channels, l->in->id[layer_in(&w, i)], &class);
            double part = fabs(now[i]) / fmax(row[layer_out(&w, i)], 1e-30);
            e->met[class] = fmax(e->met[class], part);
            e->shared[class] = e->shared[class] || mixes;
        }
    }
}

/* The geometric mean over channels that meet in values is 1; a channel without data or weights
 * keeps 1. */
static void choose_scales(Equalize *e) {
    size_t n = e->channels.n, class;
    double *sum = NEW_ARRAY(e->m->arena, double, n), *live = NEW_ARRAY(e->m->arena, double, n);
    for (size_t i = 0; i < n; i++) {
        double a = e->active[i], r = e->met[i];
        bool own = channels_class(&e->channels, i, &class) && class == i &&
                   (!e->wanted || e->wanted[channels_group(&e->channels, i)]);
        e->now[i] = own && a > 0 && r > 0 ? (e->shared[i] ? cbrt(a / (r * r)) : sqrt(a)) : 0;
        if (e->now[i] > 0) {
            sum[channels_group(&e->channels, i)] += log(e->now[i]);
            live[channels_group(&e->channels, i)] += 1;
        }
    }
    for (size_t i = 0; i < n; i++) {
        size_t group = channels_group(&e->channels, i);
        double mean = live[group] > 0 ? exp(sum[group] / live[group]) : 1;
        e->now[i] = e->now[i] > 0 ? fmin(fmax(e->now[i] / mean, 1 / MOST), MOST) : 1;
        e->scale[i] *= e->now[i];
    }
}

static void scale_layers(Equalize *e) {
    size_t class;
    for (size_t k = 0; k < e->channels.n_layers; k++) {
        const ChannelLayer *l = &e->channels.layers[k];
        LayerWeight w = weight_of(e, l);
        for (size_t i = 0; i < w.tensor->count; i++) {
            if (l->out && channels_class(&e->channels, l->out->id[layer_out(&w, i)], &class))
                e->weights[k][i] /= e->now[class];
            if (l->in && channels_class(&e->channels, l->in->id[layer_in(&w, i)], &class))
                e->weights[k][i] *= e->now[class];
        }
    }
}

static void scale_round(Equalize *e) {
    size_t n = e->channels.n;
    e->active = NEW_ARRAY(e->m->arena, double, n);
    e->met = NEW_ARRAY(e->m->arena, double, n);
    e->shared = NEW_ARRAY(e->m->arena, bool, n);
    e->now = NEW_ARRAY(e->m->arena, double, n);
    find_active(e);
    find_met(e);
    choose_scales(e);
    scale_layers(e);
}

static void read_weights(Equalize *e) {
    e->weights = NEW_ARRAY(e->m->arena, double *, e->channels.n_layers);
    for (size_t k = 0; k < e->channels.n_layers; k++) {
        const Node *n = e->channels.layers[k].node;
        const Tensor *t = n->in[n->def->quant.mac.weight]->data;
        e->weights[k] = NEW_ARRAY(e->m->arena, double, t->count);
        for (size_t i = 0; i < t->count; i++)
            e->weights[k][i] = tensor_float(t, i);
    }
}

/* ---- outliers ---- */

static int smaller_first(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* How many channels are apart from the others, GAP times as large as the next; 0 where none or many
 * are. Sizes that merely spread, as those behind a Relu do, have no gap. */
static size_t count_outliers(Equalize *e, const double *seen, size_t n) {
    double *sorted = arena_copy(e->m->arena, seen, n * sizeof *seen);
    qsort(sorted, n, sizeof *sorted, smaller_first);
    for (size_t over = 1; n >= CHANNELS_LEAST && over <= n / FEW; over++)
        if (sorted[n / 2] > 0 && sorted[n - over] > (double)GAP * sorted[n - over - 1])
            return over;
    return 0;
}

/* False after a diagnostic. */
static bool find_outliers(Equalize *e) {
    PassContext *c = e->c;
    size_t class;
    e->wanted = NEW_ARRAY(e->m->arena, bool, e->channels.n);
    if (!e->n_looked_at)
        return true;
    if (!channels_observe(&e->channels, c, SAMPLES_FIRST, e->largest))
        return false;
    for (size_t k = 0; k < e->n_looked_at; k++) {
        const ChannelSet *s = e->channels.of[e->looked_at[k]->id];
        size_t over = count_outliers(e, e->largest[e->looked_at[k]->id], s->n);
        for (size_t i = 0; over && i < s->n; i++)
            if (channels_class(&e->channels, s->id[i], &class))
                e->wanted[channels_group(&e->channels, class)] = true;
        c->n_with_outliers += over > 0;
        c->n_outliers += over;
    }
    return true;
}

bool pass_equalize(Module *m, PassContext *c) {
    Equalize e = {.c = c,
                  .m = m,
                  .channels = channels_find(m, c->d),
                  .largest = NEW_ARRAY(m->arena, double *, m->n_values)};
    module_each_value(m, choose_value, &e);
    if (c->outliers_alone && !find_outliers(&e))
        return false;
    if (c->outliers_alone && !c->n_outliers)
        return true;
    if (!channels_observe(&e.channels, c, 0, e.largest))
        return false;
    e.scale = NEW_ARRAY(m->arena, double, e.channels.n);
    for (size_t i = 0; i < e.channels.n; i++)
        e.scale[i] = 1;
    read_weights(&e);
    for (int round = 0; round < ROUNDS; round++)
        scale_round(&e);
    channels_rescale(&e.channels, e.scale, PASS_NAME);
    return true;
}
