/* SmoothQuant: makes activations that products read easier to quantize, and their weights harder
 * (Xiao, Lin, Seznec, Wu, Demouth, Han 2023).
 *
 * Transformers have channels of activations that are many times larger than the others, so that one
 * scale for all leaves those few levels; weights are even. Each channel j of a value that Gemm and
 * MatMul read is divided by
 *
 *   s[j] = max|X[j]|^alpha / max|W[j]|^(1 - alpha)
 *
 * and the weights that meet it are multiplied by s[j]: the same function in real numbers. X[j] is
 * what calibration data makes of all values of the channel that products read, W[j] are the weights
 * of all of those. The division is folded into what makes the value (passes/channels.h:
 * normalizations, Mul and Add of constants, layers before); where that cannot take it the value
 * stays, as a Mul of its own would have to read the value quantized as it was.
 *
 * Channels that the data leaves at 0, or whose weights are all 0, stay, and so do those that a Conv
 * reads. */
#include "passes/quantize/channel_scale.h"
#include "passes/edit.h"

#include <math.h>

/* A channel that the data hardly reaches is not blown up without bound. */
static const double MOST = 1e5;

typedef struct Smooth {
    Channels channels;
    float **largest; /* by value id: what products read */
    double *active;  /* by class: max|X[j]| */
    double *met;     /* by class: max|W[j]| */
    bool *by_others; /* by class: a Conv reads it */
    double *scale;   /* by class */
} Smooth;

static bool is_product(const Node *n) {
    return n->in[n->def->quant.mac.weight]->data->rank == 2;
}

static void choose_values(Smooth *s) {
    Module *m = s->channels.m;
    s->largest = NEW_ARRAY(m->arena, float *, s->channels.n_values);
    for (size_t k = 0; k < s->channels.n_layers; k++) {
        const ChannelLayer *l = &s->channels.layers[k];
        if (l->in && is_product(l->node))
            s->largest[l->node->in[0]->id] = NEW_ARRAY(m->arena, float, l->in->n);
    }
}

static void measure_layer(Smooth *s, const ChannelLayer *l) {
    const float *seen = s->largest[l->node->in[0]->id];
    LayerWeight w = layer_weight(l->node, layer_axis(s->channels.uses, l->node, s->channels.d));
    size_t class;
    for (size_t i = 0; i < l->in->n; i++) {
        channels_class(&s->channels, l->in->id[i], &class);
        if (is_product(l->node))
            s->active[class] = fmax(s->active[class], seen[i]);
        else
            s->by_others[class] = true;
    }
    for (size_t i = 0; i < w.tensor->count; i++) {
        channels_class(&s->channels, l->in->id[layer_in(&w, i)], &class);
        s->met[class] = fmax(s->met[class], fabs(tensor_float(w.tensor, i)));
    }
}

static void choose_scales(Smooth *s, double alpha) {
    for (size_t i = 0; i < s->channels.n; i++) {
        double a = s->active[i], r = s->met[i];
        bool usable = a > 0 && r > 0 && isfinite(a) && isfinite(r) && !s->by_others[i];
        double scale = usable ? pow(a, alpha) / pow(r, 1 - alpha) : 1;
        s->scale[i] = fmin(fmax(scale, 1 / MOST), MOST);
    }
}

/* Weights that several nodes read would have to be several tensors. */
static void warn_of_shared(Graph *g, void *ctx) {
    const Smooth *s = ctx;
    const Use *use;
    FOR_NODES(n, g) {
        if (!n->def || n->def->quant.kind != QUANT_MAC || !n->in[0] ||
            !s->channels.of[n->in[0]->id])
            continue;
        const Value *w = n->in[n->def->quant.mac.weight];
        if (edit_float_const(w) && uses_of(s->channels.uses, w, &use) > 1)
            diag_warning(s->channels.d, n->loc,
                         "smooth-quant: weights %s are shared with other nodes, so that what is "
                         "multiplied by them stays as it is",
                         diag_name(s->channels.d, w->name));
    }
}

bool pass_smooth_quant(Module *m, PassContext *c) {
    Smooth s = {.channels = channels_find(m, c->d)};
    size_t n = s.channels.n;
    module_each_graph(m, warn_of_shared, &s);
    choose_values(&s);
    if (!channels_observe(&s.channels, c, s.largest))
        return false;
    s.active = NEW_ARRAY(m->arena, double, n);
    s.met = NEW_ARRAY(m->arena, double, n);
    s.by_others = NEW_ARRAY(m->arena, bool, n);
    s.scale = NEW_ARRAY(m->arena, double, n);
    for (size_t k = 0; k < s.channels.n_layers; k++)
        if (s.channels.layers[k].in)
            measure_layer(&s, &s.channels.layers[k]);
    choose_scales(&s, c->smooth_alpha);
    if (!channels_rescale(&s.channels, s.scale, "smooth-quant"))
        diag_warning(c->d, LOC_NONE,
                     "smooth-quant: nothing is smoothed: no Gemm or MatMul with constant weights "
                     "reads what a normalization, a Mul by constants or another such product makes "
                     "for products alone");
    return true;
}
