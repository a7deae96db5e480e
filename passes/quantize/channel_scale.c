/* See passes/quantize/channel_scale.h. */
#include "passes/quantize/channel_scale.h"

#include "passes/edit.h"
#include "passes/quantize/observe.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* ---- data ---- */

typedef struct Look {
    const Channels *ch;
    float **largest;
} Look;

/* Finite numbers alone count. */
static float larger(float most, float x) {
    x = fabsf(x);
    return x > most && x <= FLT_MAX ? x : most;
}

void channels_look(const ChannelSet *s, Type type, const void *data, float *largest) {
    const float *x = data;
    size_t n, inner = 1;
    if (!type_count(type, &n))
        return;
    assert(type.dims[s->axis].value == (int64_t)s->n);
    for (int i = s->axis + 1; i < type.rank; i++)
        inner *= (size_t)type.dims[i].value;
    for (const float *end = x + n; x < end;)
        for (size_t c = 0; c < s->n; c++) {
            float most = largest[c];
            for (size_t i = 0; i < inner; i++, x++)
                most = larger(most, *x);
            largest[c] = most;
        }
}

static void look(void *ctx, const Value *v, const void *data) {
    const Look *l = ctx;
    if (l->largest[v->id])
        channels_look(l->ch->of[v->id], v->type, data, l->largest[v->id]);
}

bool channels_observe(const Channels *ch, PassContext *c, float **largest) {
    Look l = {ch, largest};
    DataPaths data = pass_data(c);
    FixedShapes *shapes = shapes_fix(ch->m, &data, c->d);
    if (!shapes)
        return false;
    Arena *a = arena_scratch(ch->m->arena);
    Runner *r = observe_build(ch->m, c, a);
    bool ok = r && observe_run(r, ch->m, c, look, &l);
    arena_free(a);
    shapes_restore(ch->m, shapes);
    return ok;
}

/* ---- writing ---- */

typedef struct Rescale {
    const Channels *ch;
    const double *scale; /* by class */
    UniqueNames *names;
    const char *pass;
    size_t changed; /* values */
} Rescale;

/* What a channel is divided by. */
static double scale_of(const Rescale *r, const ChannelSet *s, size_t i) {
    size_t class;
    return s && channels_class(r->ch, s->id[i], &class) ? r->scale[class] : 1;
}

static bool scales(const Rescale *r, const ChannelSet *s) {
    for (size_t i = 0; s && i < s->n; i++)
        if (scale_of(r, s, i) != 1)
            return true;
    return false;
}

/* A copy of a constant operand, for `n` alone. */
static float *new_operand(Rescale *r, Node *n, size_t at) {
    Value *old = n->in[at];
    float *out;
    n->in[at] =
        edit_new_floats(n->graph, r->names, old->name, old->data->rank, old->data->dims, &out);
    value_from(n->in[at], old, r->pass);
    return out;
}

static void set_weights(Rescale *r, const ChannelLayer *l) {
    LayerWeight w = layer_weight(l->node, layer_axis(r->ch->uses, l->node, r->ch->d));
    const Tensor *old = w.tensor;
    float *out = new_operand(r, l->node, (size_t)l->node->def->quant.mac.weight);
    for (size_t i = 0; i < old->count; i++)
        out[i] = (float)(tensor_float(old, i) * scale_of(r, l->in, l->in ? layer_in(&w, i) : 0) /
                         scale_of(r, l->out, l->out ? layer_out(&w, i) : 0));
}

static void set_bias(Rescale *r, const ChannelLayer *l) {
    Node *n = l->node;
    size_t at = (size_t)n->def->quant.mac.bias;
    if (!at || n->n_in <= at || !n->in[at])
        return;
    double *b = edit_bias(n, l->out->n);
    for (size_t i = 0; i < l->out->n; i++)
        b[i] /= scale_of(r, l->out, i);
    edit_set_bias(n, r->names, b, l->out->n, r->pass, NULL);
}

static void set_const(Rescale *r, const ChannelConst *k) {
    const Tensor *old = k->node->in[k->operand]->data; /* one number a channel, in order */
    float *out = new_operand(r, k->node, k->operand);
    for (size_t i = 0; i < old->count; i++)
        out[i] = (float)(tensor_float(old, i) / scale_of(r, k->out, i));
}

static void drop_stat(Value *v, void *ctx) {
    Rescale *r = ctx;
    if (v->id >= r->ch->n_values || !scales(r, r->ch->of[v->id]))
        return;
    v->stat = NULL;
    r->changed++;
}

size_t channels_rescale(const Channels *ch, const double *scale, const char *pass) {
    Rescale r = {.ch = ch, .scale = scale, .names = unique_names_new(ch->m), .pass = pass};
    module_each_value(ch->m, drop_stat, &r);
    for (size_t k = 0; k < ch->n_layers; k++) {
        const ChannelLayer *l = &ch->layers[k];
        if (scales(&r, l->in) || scales(&r, l->out))
            set_weights(&r, l);
        if (scales(&r, l->out))
            set_bias(&r, l);
    }
    for (size_t k = 0; k < ch->n_consts; k++)
        if (scales(&r, ch->consts[k].out))
            set_const(&r, &ch->consts[k]);
    edit_sweep(ch->m);
    return r.changed;
}
