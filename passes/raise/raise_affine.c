/* Models of quantization-aware training that were not converted compute BatchNormalization, and the
 * Div and Add with which its factor was taken out of the weights, behind a Conv of quantized
 * weights. Where a QuantizeLinear follows, the factor goes into the scales of the weights and the
 * rest into the bias:
 *
 *   f[c] * (s[c] * W q + b) + t[c] = (f[c] * s[c]) * W q + (f[c] * b + t[c])
 *
 * The integers stay, but for their sign where f is negative; where f is 0 they become 0, and the
 * scale stays. Scales and bias are computed in double and rounded once. */
#include <math.h>

#include "passes/channels.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/raise/raise.h"

typedef struct Affine { /* of `channels` entries */
    size_t channels;
    double *scale, *shift;
    Node *last; /* of the nodes that compute it */
} Affine;

/* The affine nodes behind n, composed; false where there are none. */
static bool find_affine(Raise *r, const Node *n, Affine *f) {
    double *scale = NEW_ARRAY(r->b.a, double, f->channels);
    double *shift = NEW_ARRAY(r->b.a, double, f->channels);
    for (Value *y = n->out[0];; y = f->last->out[0]) {
        Node *next = uses_only_node(r->uses, y);
        size_t data;
        if (!next || next->graph != n->graph || !next->def || !next->def->affine ||
            next->n_out < 1 || !next->out[0])
            return f->last;
        OpCtx c = op_ctx(next, r->b.d);
        if (!next->def->affine(&c, layer_makes_axis(n), f->channels, &data, scale, shift) ||
            next->in[data] != y)
            return f->last;
        for (size_t i = 0; i < f->channels; i++) {
            f->shift[i] = scale[i] * f->shift[i] + shift[i];
            f->scale[i] *= scale[i];
        }
        f->last = next;
    }
}

/* The bias as real numbers, zeros where there is none; NULL where it is computed. */
static double *real_bias(Raise *r, const Node *n, size_t channels) {
    Value *b = node_input(n, (size_t)n->def->quant.mac.bias), *ints = b ? raise_source(b) : NULL;
    const Tensor *t = ints ? value_data(ints) : NULL;
    if (!ints)
        return edit_bias(n, channels);
    if (!t || !t->data || t->count != channels)
        return NULL;
    double *v = NEW_ARRAY(r->b.a, double, channels);
    const Tensor *real = const_dequantize(r->b.a, t, ints->type.quant);
    for (size_t i = 0; i < channels; i++)
        v[i] = tensor_float(real, i);
    return v;
}

/* The scales of the weights times |f|; NULL where one is no normal number, or a bias too large. */
static Quant *scaled(Raise *r, const Quant *q, int axis, const Affine *f) {
    float *s = NEW_ARRAY(r->b.a, float, f->channels);
    for (size_t i = 0; i < f->channels; i++) {
        double times = f->scale[i] == 0 ? 1 : fabs(f->scale[i]);
        s[i] = (float)((double)quant_scale(q, q->n_scale == 1 ? 0 : i) * times);
        if (!isnormal(s[i]) || !isfinite((float)f->shift[i]))
            return NULL;
    }
    Quant *to = quant_per_axis(r->b.a, q->storage, axis, f->channels, s, NULL);
    to->has_range = q->has_range;
    to->lo = q->lo;
    to->hi = q->hi;
    return to;
}

/* The integers with the signs of the factors; NULL where one has no place. */
static Tensor *signed_as(Raise *r, const Tensor *t, const Quant *q, int axis, const Affine *f) {
    AxisWalk k = edit_axis(t->rank, t->dims, axis);
    uint8_t *bytes;
    Tensor *out = tensor_new(r->b.a, t->elem, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++) {
        double by = f->scale[i / k.inner % k.axis];
        int64_t v = by == 0 ? 0 : by < 0 ? -tensor_int(t, i) : tensor_int(t, i);
        if (v < quant_lo(q) || v > quant_hi(q))
            return NULL;
        elem_store_int(t->elem, bytes, i, v);
    }
    return out;
}

/* `n` reads these weights, dequantized. */
static void set_weights(Raise *r, Node *n, Value *old, Tensor *t, const Quant *q) {
    old = raise_plain(r, old); /* the name is the first one's */
    size_t at = (size_t)n->def->quant.mac.weight;
    Value *c = build_from(&r->b, old, "_scaled", type_quantized(tensor_type(r->b.a, t), q), t);
    Node *d = build_node(&r->b, n, "DequantizeLinear", STR_NONE, OPERANDS(c));
    n->in[at] = build_before(&r->b, n, d, c->name, "_real", real_type(c->type));
}

static void absorb(Raise *r, Node *n, Node *last) {
    for (Node *next; n->out[0] != last->out[0];) {
        next = uses_only_node(r->uses, n->out[0]);
        node_take_result(n, 0, next->out[0]);
        node_absorb(n, next, r->b.pass);
        node_remove(next);
        if (next == last)
            break;
    }
}

/* Whether integers come in, as they are or through what keeps them (MaxPool, Flatten). */
static bool reads_integers(const Node *n) {
    Value *x = n->in[0];
    while (x && !raise_source(x)) {
        const Node *by = x->kind == VALUE_NODE ? x->def : NULL;
        QuantClass kind = by && by->def ? by->def->quant.kind : QUANT_NEVER;
        if (kind != QUANT_MOVE && kind != QUANT_ORDER && kind != QUANT_CLAMP)
            return false;
        x = by->in[0];
    }
    return x != NULL;
}

static void raise_node(Raise *r, Node *n) {
    const QuantRule *rule = n->def ? &n->def->quant : NULL;
    if (!rule || rule->kind != QUANT_MAC || !rule->mac.bias || n->n_out != 1 || !n->out[0] ||
        n->n_in <= (size_t)rule->mac.weight || !reads_integers(n))
        return;
    Value *w = raise_source(n->in[rule->mac.weight]);
    const Tensor *t = w ? value_data(w) : NULL;
    OpCtx c = op_ctx(n, r->b.d);
    int axis = t && t->data ? quant_weight_axis(rule, &c) : -1;
    const Quant *q = w ? w->type.quant : NULL;
    if (axis < 0 || axis >= t->rank || q->kind != QUANT_PARAMS || !quant_zp_all_zero(q) ||
        q->n_axes > 1 || (q->n_axes && (q->axis[0] != axis || q->block[0] > 1)) ||
        node_float(n, rule->mac.weight_factor, 1.0F) != 1 ||
        node_float(n, rule->mac.bias_factor, 1.0F) != 1)
        return;
    Affine f = {.channels = (size_t)t->dims[axis]};
    f.scale = NEW_ARRAY(r->b.a, double, f.channels);
    f.shift = real_bias(r, n, f.channels);
    for (size_t i = 0; i < f.channels; i++)
        f.scale[i] = 1;
    if (!f.shift || !find_affine(r, n, &f) || !raise_reached_quantize(r, f.last->out[0]))
        return;
    Quant *to = scaled(r, q, axis, &f);
    Tensor *ints = to ? signed_as(r, t, q, axis, &f) : NULL;
    if (!ints) {
        pass_remark(r->c, n, "with what %s multiplies and adds behind it, %s", node_text(f.last),
                    to ? "a weight has no place in its type"
                       : "a scale or a bias is no normal number of 32 bits");
        return;
    }
    set_weights(r, n, w, ints, to);
    bool shifts = node_input(n, (size_t)rule->mac.bias) != NULL;
    for (size_t i = 0; i < f.channels; i++)
        shifts |= f.shift[i] != 0;
    if (shifts)
        edit_set_bias(n, r->b.names, f.shift, f.channels, r->b.pass, f.last);
    absorb(r, n, f.last);
}

static void raise_graph(Graph *g, void *ctx) {
    for (Node *n = g->first; n; n = n->next) /* its successors may go */
        raise_node(ctx, n);
}

void raise_affine(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}
