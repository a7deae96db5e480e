/* Folds per-channel affine operators (BatchNormalization, Mul and Add by constants) into the Conv,
 * Gemm or MatMul before them, and Gemm's alpha and beta into its constants, so that one
 * accumulation with one bias remains. A BatchNormalization with nothing to fold into becomes a
 * depthwise 1x1 Conv, which can be integer where the original cannot; a factor for all elements
 * goes further up, through data movers and products.
 *
 *   y = scale[c] * (W x + b) + shift[c] = (scale[c] W) x + (scale[c] b + shift[c])
 *
 * Products are formed in double and rounded once. */
#include "passes/channels.h"
#include "passes/edit.h"
#include "passes/prepare/affine_conv.h"
#include "support/parallel.h"

#include <float.h>
#include <math.h>

static const char PASS_NAME[] = "fold-affine";

typedef struct Fold {
    PassContext *c;
    QuantBuild build;
    Uses *uses;
    Arena *arena;
} Fold;

static int weight_axis(Fold *f, const Node *n) {
    OpCtx c = op_ctx(n, f->c->d);
    return quant_weight_axis(&n->def->quant, &c);
}

static bool all_are(const double *v, size_t n, double x) {
    size_t i = 0;
    while (i < n && v[i] == x)
        i++;
    return i == n;
}

static bool has_decided_bias(const Node *n) {
    size_t at = (size_t)n->def->quant.mac.bias;
    return at && edit_is_decided(node_input(n, at));
}

typedef struct Scaling {
    const Tensor *w;
    AxisWalk axis;
    const double *scale;
    size_t n_scale;
    float *out;
} Scaling;

static void scale_part(void *ctx, size_t from, size_t to, int worker) {
    const Scaling *s = ctx;
    (void)worker;
    for (size_t i = from; i < to; i++) {
        size_t c = s->n_scale == 1 ? 0 : i / s->axis.inner % s->axis.axis;
        s->out[i] = (float)(tensor_float(s->w, i) * s->scale[c]);
    }
}

/* W[.., c, ..] *= scale[c], as a new constant; scale has one entry or one per channel. `other` is
 * the node that scaled, or NULL. */
static void scale_weights(Fold *f, Node *n, const Node *other, int axis, const double *scale,
                          size_t n_scale) {
    if (all_are(scale, n_scale, 1))
        return;
    int at = n->def->quant.mac.weight;
    Value *old = n->in[at];
    const Tensor *w = old->data;
    uint8_t *bytes;
    Tensor *t = tensor_begin(f->arena, ELEM_FLOAT, w->rank, w->dims, &bytes);
    Scaling s = {w, edit_axis(w->rank, w->dims, axis), scale, n_scale, (float *)(void *)bytes};
    parallel_for(w->count, PARALLEL_PART / 8, scale_part, &s);
    module_release(n->graph->module, w);
    Value *v = graph_add_const(n->graph, unique_name(f->build.names, old->name),
                               tensor_type(f->arena, t), tensor_end(f->arena, t));
    v->type = old->type.tilde ? type_tilde(v->type, old->type.quant) : v->type;
    value_from(v, old, PASS_NAME);
    value_from_node(v, other, PASS_NAME);
    n->in[at] = v;
}

/* Gemm's alpha goes into the weights, beta into the bias. */
static void fold_factors(Fold *f, Node *n, int axis, size_t channels) {
    const QuantRule *q = &n->def->quant;
    double a = (double)node_float(n, q->mac.weight_factor, 1.0F);
    double factor = (double)node_float(n, q->mac.bias_factor, 1.0F);
    if (a != 1 && !edit_is_decided(n->in[q->mac.weight])) {
        scale_weights(f, n, NULL, axis, &a, 1);
        node_drop_attr(n, q->mac.weight_factor);
    }
    size_t at = (size_t)q->mac.bias;
    if (has_decided_bias(n))
        return;
    if (at >= n->n_in || !n->in[at]) {
        node_drop_attr(n, q->mac.bias_factor); /* of nothing; a bias to come must not be scaled */
    } else if (factor == 0) {
        n->n_in = at; /* the last operand goes, infinite or not, as runtimes have it */
        node_drop_attr(n, q->mac.bias_factor);
    } else if (factor != 1) {
        double *b = edit_bias(n, channels);
        if (!b)
            return;
        for (size_t c = 0; c < channels; c++)
            b[c] *= factor;
        node_drop_attr(n, q->mac.bias_factor);
        edit_set_bias(n, f->build.names, b, channels, PASS_NAME, NULL);
    }
}

/* Whether finite weights stay finite, as the product of two large numbers may not, and nothing that
 * is written of them stops to hold. */
static bool weights_hold(const Node *n, const double *scale, size_t channels) {
    const Tensor *w = n->in[n->def->quant.mac.weight]->data;
    float min = 0, max = 0;
    double most = 0;
    if (all_are(scale, channels, 1))
        return true;
    if (edit_is_decided(n->in[n->def->quant.mac.weight]))
        return false;
    row_range(tensor_floats(w), w->count, &min, &max);
    for (size_t c = 0; c < channels; c++)
        most = fmax(most, fabs(scale[c]));
    return most * fmax(-(double)min, (double)max) <= (double)FLT_MAX;
}

/* Folds the affine consumer of n's result into n; false when there is none. What has no bias can
 * only be scaled. */
static bool fold_next(Fold *f, Node *n, int axis, size_t channels) {
    Value *y = n->out[0];
    Node *next = uses_only_here(f->uses, y);
    if (!next || !next->def || !next->def->affine || next->n_out < 1 || !next->out[0] ||
        edit_is_decided(y) || has_decided_bias(n))
        return false;
    if (!n->def->quant.mac.bias && !next->def->quant.scaled.multiplies)
        return false; /* without a look at its numbers, and at the pages they share with others */
    double *scale = NEW_ARRAY(f->arena, double, channels);
    double *shift = NEW_ARRAY(f->arena, double, channels);
    size_t data;
    OpCtx c = op_ctx(next, f->c->d);
    if (!next->def->affine(&c, layer_makes_axis(n), channels, &data, scale, shift) ||
        next->in[data] != y || !edit_all_finite(scale, channels) ||
        !edit_all_finite(shift, channels))
        return false;
    double *b = n->def->quant.mac.bias ? edit_bias(n, channels) : NULL;
    if (!b && (n->def->quant.mac.bias || !all_are(shift, channels, 0)))
        return false;
    if (!weights_hold(n, scale, channels))
        return false;
    for (size_t i = 0; b && i < channels; i++)
        b[i] = scale[i] * b[i] + shift[i];
    scale_weights(f, n, next, axis, scale, channels);
    if (b)
        edit_set_bias(n, f->build.names, b, channels, PASS_NAME, next);
    edit_hand_on_open(y, next->out[0]);
    node_take_result(n, 0, next->out[0]);
    node_absorb(n, next, PASS_NAME);
    node_remove(next);
    return true;
}

static void fold_node(Fold *f, Node *n) {
    if (!n->def || n->def->quant.kind != QUANT_MAC || n->n_out < 1 || !n->out[0])
        return;
    const Tensor *w = edit_float_const(n->in[n->def->quant.mac.weight]);
    int axis = w ? weight_axis(f, n) : -1;
    if (axis < 0 || axis >= w->rank)
        return;
    size_t channels = (size_t)w->dims[axis];
    fold_factors(f, n, axis, channels);
    while (fold_next(f, n, axis, channels))
        ;
}

/* The node with constant weights that `v` comes from through data movers and products, which a
 * factor on it passes: nobody reads what lies between, nor says what range it has. NULL: none. */
static Node *scalable_source(Fold *f, Value *v) {
    for (;;) {
        Node *n = v->def;
        if (!n || !n->def || uses_only_here(f->uses, v) == NULL || v->stat || v->type.quant ||
            n->n_in < 1 || !n->in[0] || n->n_out != 1)
            return NULL;
        const QuantRule *q = &n->def->quant;
        const Value *w = q->kind == QUANT_MAC ? n->in[q->mac.weight] : NULL;
        if (w && edit_float_const(w) && !edit_is_decided(w))
            return weight_axis(f, n) >= 0 && weight_axis(f, n) < w->data->rank ? n : NULL;
        bool mover = q->kind == QUANT_MOVE && q->data == 1 && !q->move.fill;
        if (!mover && !node_is(n, "MatMul"))
            return NULL;
        v = n->in[0];
    }
}

/* A factor for all elements, as attention has behind its first product, goes into weights further
 * up: softmax((x Wq)(x Wk)^T / c) is softmax((x Wq / c)(x Wk)^T). */
static void fold_factor(Fold *f, Node *n) {
    if (!n->def || !n->def->affine || n->n_out < 1 || !n->out[0])
        return;
    double scale, shift;
    size_t data;
    Type few[OP_FEW];
    OpCtx c = op_ctx_few(n, few, f->c->d);
    if (!n->def->affine(&c, 1, 1, &data, &scale, &shift) || shift != 0 || !isfinite(scale) ||
        scale == 0 || n->in[data]->graph != n->graph ||
        !type_same_shape(n->in[data]->type, n->out[0]->type))
        return;
    Node *source = scalable_source(f, n->in[data]), *last = n->in[data]->def;
    if (!source || source == last) /* that is fold_next's */
        return;
    int axis = weight_axis(f, source);
    size_t channels = (size_t)source->in[source->def->quant.mac.weight]->data->dims[axis];
    double *b = edit_bias(source, channels);
    bool biased = source->def->quant.mac.bias &&
                  source->n_in > (size_t)source->def->quant.mac.bias &&
                  source->in[source->def->quant.mac.bias];
    if (biased && !b)
        return;
    for (size_t i = 0; biased && i < channels; i++)
        b[i] *= scale;
    scale_weights(f, source, n, axis, &scale, 1);
    if (biased)
        edit_set_bias(source, f->build.names, b, channels, PASS_NAME, n);
    node_take_result(last, 0, n->out[0]);
    node_absorb(last, n, PASS_NAME);
    node_remove(n);
}

/* Div by a number that stays: Mul has an integer form. */
static bool divides_by_number(Fold *f, Node *n) {
    const Tensor *t = node_is(n, "Div") && n->n_in == 2 ? edit_float_const(n->in[1]) : NULL;
    double k = t && t->count == 1 ? 1 / tensor_float(t, 0) : 0;
    float *out;
    if (!isnormal((float)k) || edit_is_decided(n->in[1]))
        return false;
    Value *v = edit_new_floats(n->graph, f->build.names, n->in[1]->name, t->rank, t->dims, &out);
    *out = (float)k;
    edit_hand_on_open(n->in[1], v);
    value_from(v, n->in[1], PASS_NAME);
    n->in[1] = v;
    node_becomes(n, PASS_NAME);
    n->op = STR("Mul");
    op_resolve(n, f->c->d);
    return true;
}

static void fold_graph(Graph *g, void *ctx) {
    for (Node *n = g->first; n; n = n->next) /* folding removes nodes after n */
        fold_node(ctx, n);
}

static void factor_graph(Graph *g, void *ctx) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        fold_factor(ctx, n);
    }
}

static void convert_graph(Graph *g, void *ctx) {
    Fold *f = ctx;
    FOR_NODES(n, g)
    if (!divides_by_number(f, n))
        affine_to_conv(&f->build, n, f->c->no_floats);
}

bool pass_fold_affine(Module *m, PassContext *c) {
    Fold f = {c, quant_build_new(m, c, PASS_NAME), uses_new(m), m->arena};
    module_each_graph(m, fold_graph, &f);
    f.uses = uses_new(m);
    module_each_graph(m, factor_graph, &f);
    if (!c->products_alone) /* what computes in float is as runtimes know it: Div in Gelu */
        module_each_graph(m, convert_graph, &f);
    f.uses = uses_new(m);
    module_each_graph(m, fold_graph, &f);
    edit_sweep(m);
    return true;
}
