/* Operators multiply and accumulate on integers only with a bias on the accumulator's grid: int32,
 * its scale the product of those of input and weights. */
#include <math.h>

#include "passes/const_quant.h"
#include "passes/lower/lower.h"

/* What the bias has to be quantized with; NULL where there is not one accumulator a channel. */
static Quant *accumulator(Lower *l, const Node *n) {
    const QuantRule *r = &n->def->quant;
    const Quant *x = op_quant(n->in[0]), *w = op_quant(n->in[r->mac.weight]);
    OpCtx c = op_ctx(n, NULL);
    int axis = quant_weight_axis(r, &c);
    if (!x || !w || x->kind != QUANT_PARAMS || w->kind != QUANT_PARAMS || !quant_is_per_tensor(x) ||
        w->n_axes > 1 || (w->n_axes && (w->block[0] > 1 || w->axis[0] != axis)))
        return NULL;
    return quant_product(l->b.a, x, w);
}

/* The numbers that the integers stand for, as DequantizeLinear computes them. */
static Tensor *real_numbers(Lower *l, const Tensor *t, const Quant *q) {
    uint8_t *bytes;
    Tensor *to = tensor_new(l->b.a, ELEM_FLOAT, t->rank, t->dims, &bytes);
    float *out = (float *)(void *)bytes;
    for (size_t i = 0; i < t->count; i++) {
        size_t at = quant_index(q, t->rank, t->dims, i);
        out[i] = (float)(tensor_int(t, i) - quant_zp(q, at)) * quant_scale(q, at);
    }
    return to;
}

static bool fits_int32(const Tensor *t, const Quant *q, size_t channels) {
    for (size_t c = 0; c < channels; c++)
        if (fabs(tensor_float(t, t->count == 1 ? 0 : c) / (double)quant_scale(q, c)) > INT32_MAX)
            return false;
    return true;
}

static void restate(Lower *l, Node *n, Value *b) {
    Quant *q = accumulator(l, n);
    const Tensor *t = b->data;
    if (!q || !t->data || t->rank > 1)
        return;
    size_t channels = q->n_axes && t->count == 1 ? q->n_scale : t->count;
    Tensor *real = real_numbers(l, t, b->type.quant);
    if ((q->n_axes && channels != q->n_scale) || !fits_int32(real, q, channels))
        return;
    diag_note(l->b.d, n->loc,
              "%s: bias '%s' is on a grid of its own; restated at the scale of the accumulator",
              node_text(n), diag_name(l->b.d, b->name));
    Tensor *ints = const_bias(l->b.a, real, q, channels);
    Type type = type_quantized(tensor_type(l->b.a, ints), q);
    if (uses_only_node(l->uses, b) == n) {
        b->data = ints;
        b->type = type;
        return;
    }
    Value *v = build_from(&l->b, b, "_int32", type, ints);
    v->loc = b->loc;
    n->in[n->def->quant.mac.bias] = v;
}

static void restate_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g) {
        size_t at = n->def && n->def->quant.kind == QUANT_MAC ? (size_t)n->def->quant.mac.bias : 0;
        Value *b = at ? node_input(n, at) : NULL;
        if (b && value_is_const(b) && op_quant(b) && op_quant(b)->kind == QUANT_PARAMS &&
            op_quant(b)->storage != ELEM_INT32)
            restate(ctx, n, b);
    }
}

void lower_biases(Lower *l, Module *m) {
    module_each_graph(m, restate_graph, l);
}
