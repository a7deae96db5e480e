/* Scales channels so that those of one activation are about equally large, which one scale for all
 * of them then fits.
 *
 * Between two layers y = W2 f(W1 x + b1), with f only Relu and MaxPool, channel c of the first may
 * be divided by any s[c] > 0 that the second multiplies by: the same function in real numbers
 * (Nagel, van Baalen, Blankevoort, Welling 2019, section 4.1). As weights have a scale for each
 * output channel, W1 does not mind. s[c] = sqrt(a[c] / r[c]) makes a channel's largest activation
 * a[c], seen on the calibration data, as large as the largest weight r[c] that it meets
 * (SmoothQuant with 0.5: Xiao, Lin, Seznec, Wu, Demouth, Han 2023); where each channel meets
 * weights of its own (depthwise), s[c] = a[c] makes activations equal.
 *
 * Pairs change each other's weights, so there are some rounds. What is read by anything else,
 * results of the graph included, stays as it is. */
#include "passes/edit.h"
#include "passes/observe.h"

#include <math.h>

static const char PASS_NAME[] = "equalize";

enum { ROUNDS = 3 };

typedef struct Pair {
    Node *from, *to;
    Value *between; /* what `to` reads */
    size_t channels;
    double *largest; /* by channel, seen in `between` */
    double *scale;   /* s, over all rounds */
} Pair;

typedef struct Equalize {
    PassContext *c;
    Module *m;
    UniqueNames *names;
    Uses *uses;
    Pair *pairs;
    size_t n, cap;
    Pair **by_value;  /* by id of `between` */
    double **weights; /* by value id: a weight as it is now */
} Equalize;

/* ---- pairs ---- */

static Node *only_reader(const Equalize *e, const Value *v) {
    const Use *use;
    return uses_of(e->uses, v, &use) == 1 && use->node && use->node->graph == v->graph &&
                   use->index == 0
               ? use->node
               : NULL;
}

/* A constant weight that nothing else reads, with one accumulation for each output channel. */
static const Tensor *own_weight(const Equalize *e, const Node *n, int *axis) {
    const Use *use;
    if (!n->def || n->def->quant.kind != QUANT_MAC || !n->def->quant.sums)
        return NULL;
    Value *w = n->in[n->def->quant.weight];
    const Tensor *t = edit_float_const(w);
    OpCtx c = op_ctx(n, e->c->d);
    *axis = t && n->def->quant.weight_axis ? n->def->quant.weight_axis(&c) : -1;
    return *axis >= 0 && t->rank > 1 && uses_of(e->uses, w, &use) == 1 ? t : NULL;
}

/* Channels stand along axis 1, not along the last. */
static bool is_conv(const Node *n) {
    return n->in[n->def->quant.weight]->data->rank > 2;
}

/* f(s x) = s f(x) for each channel and s > 0. */
static bool is_homogeneous(const Node *n) {
    const QuantRule *q = &n->def->quant;
    return (q->kind == QUANT_CLAMP && q->cuts_at_zero) ||
           (q->kind == QUANT_ORDER && node_is(n, "MaxPool"));
}

static int64_t groups_of(const Node *n) {
    const Attr *a = node_attr(n, "group");
    return a ? a->v.i[0] : 1;
}

/* Input channels of a weight: Conv's [M, C/group, ..], a matrix's other dimension. */
static size_t channels_in(const Node *n, const Tensor *w, int axis) {
    return (size_t)(w->dims[axis == 0 ? 1 : 0] * groups_of(n));
}

static void find_pair(Equalize *e, Node *from) {
    int axis;
    const Tensor *w = own_weight(e, from, &axis);
    if (!w || type_real_elem(from->out[0]->type) != ELEM_FLOAT)
        return;
    size_t channels = (size_t)w->dims[axis];
    if (from->def->quant.bias && !edit_bias(from, channels))
        return;
    Value *v = from->out[0];
    Node *to = only_reader(e, v);
    while (to && to->def && is_homogeneous(to) && to->n_out >= 1) {
        v = to->out[0];
        to = only_reader(e, v);
    }
    const Tensor *next = to ? own_weight(e, to, &axis) : NULL;
    if (!next || channels_in(to, next, axis) != channels || is_conv(from) != is_conv(to) ||
        node_attr(to, "transA"))
        return;
    Pair p = {.from = from, .to = to, .between = v, .channels = channels};
    p.largest = NEW_ARRAY(e->m->arena, double, channels);
    p.scale = NEW_ARRAY(e->m->arena, double, channels);
    for (size_t i = 0; i < channels; i++)
        p.scale[i] = 1;
    ARENA_PUSH(e->m->arena, e->pairs, e->n, e->cap, p);
}

static void find_pairs(Graph *g, void *ctx) {
    FOR_NODES(n, g) find_pair(ctx, n);
}

/* ---- what is between ---- */

static void look(void *ctx, const Value *v, const void *data) {
    Equalize *e = ctx;
    Pair *p = e->by_value[v->id];
    const float *x = data;
    size_t n;
    if (!p || !type_count(v->type, &n))
        return;
    int axis = is_conv(p->to) ? 1 : v->type.rank - 1;
    size_t inner = 1;
    for (int i = axis + 1; i < v->type.rank; i++)
        inner *= (size_t)v->type.dims[i].value;
    for (size_t i = 0; i < n; i++) {
        double *largest = &p->largest[i / inner % p->channels];
        if (fabs((double)x[i]) > *largest)
            *largest = fabs((double)x[i]);
    }
}

/* ---- scales ---- */

typedef struct Weights { /* of one node, as they are now */
    const Node *node;
    const Tensor *tensor;
    double *now;
    int axis;
    AxisWalk walk; /* along the output channels */
} Weights;

static Weights weights_of(Equalize *e, const Node *n) {
    Weights w = {.node = n};
    Value *v = n->in[n->def->quant.weight];
    w.tensor = own_weight(e, n, &w.axis);
    w.walk = edit_axis(v->data->rank, v->data->dims, w.axis);
    if (!e->weights[v->id]) {
        e->weights[v->id] = NEW_ARRAY(e->m->arena, double, v->data->count);
        for (size_t i = 0; i < v->data->count; i++)
            e->weights[v->id][i] = tensor_float(v->data, i);
    }
    w.now = e->weights[v->id];
    return w;
}

static size_t channel_out(const Weights *w, size_t at) {
    return at / w->walk.inner % w->walk.axis;
}

static size_t channel_in(const Weights *w, size_t at) {
    if (w->axis != 0)
        return at / w->walk.axis; /* [in, out] */
    size_t per_group = (size_t)w->tensor->dims[1], inner = w->walk.inner / per_group;
    size_t groups = (size_t)groups_of(w->node);
    size_t group = channel_out(w, at) / (w->walk.axis / groups);
    return group * per_group + at / inner % per_group;
}

/* By input channel: its largest weight, as a part of the largest of the same output channel. */
static double *largest_parts(Equalize *e, const Weights *w, size_t channels) {
    double *row = NEW_ARRAY(e->m->arena, double, w->walk.axis);
    double *largest = NEW_ARRAY(e->m->arena, double, channels);
    for (size_t i = 0; i < w->tensor->count; i++)
        row[channel_out(w, i)] = fmax(row[channel_out(w, i)], fabs(w->now[i]));
    for (size_t i = 0; i < w->tensor->count; i++) {
        double part = fabs(w->now[i]) / fmax(row[channel_out(w, i)], 1e-30);
        size_t c = channel_in(w, i);
        largest[c] = fmax(largest[c], part);
    }
    return largest;
}

/* The scales of this round: their geometric mean is 1, a channel without data or weights has 1. */
static double *choose(Equalize *e, const Pair *p, const Weights *to) {
    static const double MOST = 100;
    bool depthwise = to->axis == 0 && to->tensor->dims[1] == 1 && p->channels > 1;
    double *s = largest_parts(e, to, p->channels), sum = 0;
    size_t live = 0;
    for (size_t c = 0; c < p->channels; c++) {
        double a = p->largest[c] / p->scale[c];
        s[c] = a > 0 && s[c] > 0 ? (depthwise ? a : sqrt(a / s[c])) : 0;
        if (s[c] > 0) {
            sum += log(s[c]);
            live++;
        }
    }
    double mean = live ? exp(sum / (double)live) : 1;
    for (size_t c = 0; c < p->channels; c++)
        s[c] = s[c] > 0 ? fmin(fmax(s[c] / mean, 1 / MOST), MOST) : 1;
    return s;
}

static void scale_pair(Equalize *e, Pair *p) {
    Weights from = weights_of(e, p->from), to = weights_of(e, p->to);
    const double *s = choose(e, p, &to);
    for (size_t i = 0; i < from.tensor->count; i++)
        from.now[i] /= s[channel_out(&from, i)];
    for (size_t i = 0; i < to.tensor->count; i++)
        to.now[i] *= s[channel_in(&to, i)];
    for (size_t c = 0; c < p->channels; c++)
        p->scale[c] *= s[c];
}

/* ---- writing ---- */

static void set_weights(Equalize *e, Node *n) {
    int at = n->def->quant.weight;
    Value *old = n->in[at];
    const double *now = e->weights[old->id];
    float *out;
    Value *v =
        edit_new_floats(n->graph, e->names, old->name, old->data->rank, old->data->dims, &out);
    for (size_t i = 0; i < old->data->count; i++)
        out[i] = (float)now[i];
    value_from(v, old, PASS_NAME);
    n->in[at] = v;
}

static void set_bias(Equalize *e, const Pair *p) {
    Node *n = p->from;
    size_t at = (size_t)n->def->quant.bias;
    if (!at || n->n_in <= at || !n->in[at])
        return;
    double *b = edit_bias(n, p->channels);
    for (size_t c = 0; c < p->channels; c++)
        b[c] /= p->scale[c];
    edit_set_bias(n, e->names, b, p->channels, PASS_NAME, p->to);
}

static void write(Equalize *e) {
    bool *done = NEW_ARRAY(e->m->arena, bool, e->m->n_nodes);
    for (size_t i = 0; i < e->n; i++) {
        Node *both[] = {e->pairs[i].from, e->pairs[i].to};
        for (int k = 0; k < 2; k++) {
            if (!done[both[k]->id])
                set_weights(e, both[k]);
            done[both[k]->id] = true;
        }
        set_bias(e, &e->pairs[i]);
    }
}

bool pass_equalize(Module *m, PassContext *c) {
    Equalize e = {.c = c, .m = m, .names = unique_names_new(m), .uses = uses_new(m)};
    module_each_graph(m, find_pairs, &e);
    if (!e.n)
        return true;
    e.weights = NEW_ARRAY(m->arena, double *, m->n_values);
    e.by_value = NEW_ARRAY(m->arena, Pair *, m->n_values);
    for (size_t i = 0; i < e.n; i++)
        e.by_value[e.pairs[i].between->id] = &e.pairs[i];
    FixedShapes *shapes = shapes_fix(m, c->d);
    if (!shapes)
        return false;
    bool ok = observe_run(m, c, look, &e);
    shapes_restore(m, shapes);
    for (int round = 0; ok && round < ROUNDS; round++)
        for (size_t i = 0; i < e.n; i++)
            scale_pair(&e, &e.pairs[i]);
    if (ok)
        write(&e);
    edit_sweep(m);
    return ok;
}
