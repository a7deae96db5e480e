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
 * By default only outliers are mended (passes/quantize/outliers.h): the channels that meet in a
 * value which has some are scaled, and no others. Calibration has seen them then. */
#include "passes/quantize/channel_scale.h"
#include "passes/quantize/outliers.h"

#include <math.h>

static const char PASS_NAME[] = "equalize";

enum { ROUNDS = 3 };

static const double MOST = 100; /* that one round scales by */

typedef struct Equalize {
    PassContext *c;
    Module *m;
    ChannelSizes *sizes;
    const Channels *channels; /* its */
    double **weights;         /* by layer: as they are now */
    double *scale;            /* by class: s, over all rounds */
    double *active, *met;     /* by class, of this round: a and r */
    bool *shared;             /* by class: some reader mixes channels */
    double *now;              /* by class: s of this round */
    const bool *wanted;       /* by group: it is scaled; NULL: all are */
} Equalize;

/* ---- scales ---- */

/* a: each channel as a part of the largest of its value as it is scaled now. */
static void find_active(Equalize *e) {
    for (size_t k = 0; k < e->sizes->n_values; k++) {
        const ChannelSet *s = e->channels->of[e->sizes->values[k]->id];
        const float *seen = e->sizes->largest[e->sizes->values[k]->id];
        double most = 0;
        size_t class;
        for (size_t i = 0; i < s->n; i++) {
            channels_class(e->channels, s->id[i], &class);
            most = fmax(most, (double)seen[i] / e->scale[class]);
        }
        for (size_t i = 0; most > 0 && i < s->n; i++) {
            channels_class(e->channels, s->id[i], &class);
            e->active[class] = fmax(e->active[class], (double)seen[i] / e->scale[class] / most);
        }
    }
}

static LayerWeight weight_of(const Equalize *e, const ChannelLayer *l) {
    return layer_weight(l->node, layer_axis(e->channels->uses, l->node, e->c->d));
}

/* r: the largest weight that a channel meets, as a part of the largest of the same output. */
static void find_met(Equalize *e) {
    for (size_t k = 0; k < e->channels->n_layers; k++) {
        const ChannelLayer *l = &e->channels->layers[k];
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
            channels_class(e->channels, l->in->id[layer_in(&w, i)], &class);
            double part = fabs(now[i]) / fmax(row[layer_out(&w, i)], 1e-30);
            e->met[class] = fmax(e->met[class], part);
            e->shared[class] = e->shared[class] || mixes;
        }
    }
}

/* The geometric mean over channels that meet in values is 1; a channel without data or weights
 * keeps 1. */
static void choose_scales(Equalize *e) {
    size_t n = e->channels->n, class;
    double *sum = NEW_ARRAY(e->m->arena, double, n), *live = NEW_ARRAY(e->m->arena, double, n);
    for (size_t i = 0; i < n; i++) {
        double a = e->active[i], r = e->met[i];
        bool own = channels_class(e->channels, i, &class) && class == i &&
                   (!e->wanted || e->wanted[channels_group(e->channels, i)]);
        e->now[i] = own && a > 0 && r > 0 ? (e->shared[i] ? cbrt(a / (r * r)) : sqrt(a)) : 0;
        if (e->now[i] > 0) {
            sum[channels_group(e->channels, i)] += log(e->now[i]);
            live[channels_group(e->channels, i)] += 1;
        }
    }
    for (size_t i = 0; i < n; i++) {
        size_t group = channels_group(e->channels, i);
        double mean = live[group] > 0 ? exp(sum[group] / live[group]) : 1;
        e->now[i] = e->now[i] > 0 ? fmin(fmax(e->now[i] / mean, 1 / MOST), MOST) : 1;
        e->scale[i] *= e->now[i];
    }
}

static void scale_layers(Equalize *e) {
    size_t class;
    for (size_t k = 0; k < e->channels->n_layers; k++) {
        const ChannelLayer *l = &e->channels->layers[k];
        LayerWeight w = weight_of(e, l);
        for (size_t i = 0; i < w.tensor->count; i++) {
            if (l->out && channels_class(e->channels, l->out->id[layer_out(&w, i)], &class))
                e->weights[k][i] /= e->now[class];
            if (l->in && channels_class(e->channels, l->in->id[layer_in(&w, i)], &class))
                e->weights[k][i] *= e->now[class];
        }
    }
}

static void scale_round(Equalize *e) {
    size_t n = e->channels->n;
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
    e->weights = NEW_ARRAY(e->m->arena, double *, e->channels->n_layers);
    for (size_t k = 0; k < e->channels->n_layers; k++) {
        const Node *n = e->channels->layers[k].node;
        const Tensor *t = n->in[n->def->quant.mac.weight]->data;
        e->weights[k] = NEW_ARRAY(e->m->arena, double, t->count);
        for (size_t i = 0; i < t->count; i++)
            e->weights[k][i] = tensor_float(t, i);
    }
}

bool pass_equalize(Module *m, PassContext *c) {
    bool seen = c->sizes != NULL;
    Equalize e = {.c = c, .m = m, .sizes = seen ? c->sizes : channel_sizes_new(m, c->d)};
    c->sizes = NULL; /* of what the module was */
    e.channels = &e.sizes->channels;
    if (!seen && !channels_observe(e.channels, c, e.sizes->largest))
        return false;
    if (c->outliers_alone) {
        Outliers found = outliers_find(e.sizes);
        c->n_outliers = found.n;
        c->n_with_outliers = found.values;
        e.wanted = found.groups;
        if (!found.n)
            return true;
    }
    e.scale = NEW_ARRAY(m->arena, double, e.channels->n);
    for (size_t i = 0; i < e.channels->n; i++)
        e.scale[i] = 1;
    read_weights(&e);
    for (int round = 0; round < ROUNDS; round++)
        scale_round(&e);
    channels_rescale(e.channels, e.scale, PASS_NAME);
    return true;
}
