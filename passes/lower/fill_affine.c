/* A BatchNormalization between integers, which no Conv before it took in, as a rounded result
 * stands between them: scale[c] * x + shift[c] is a Conv of one number a channel. The weights are
 * 64 of 1/64 of the scale, so that nothing of it is lost; the shift is rounded to 1/64 of a step of
 * x. */
#include "passes/lower/fill_affine.h"

#include <math.h>

#include "passes/const_quant.h"
#include "passes/line.h"

enum { CHANNELS = 1, WEIGHT = 64 };    /* the axis; an integer */
static const double of_scale = 0x1p-6; /* 1 / WEIGHT */

typedef struct Affine {
    size_t channels;
    double *scale, *shift; /* one a channel */
} Affine;

/* Constants that were quantized like weights are the real numbers that they stand for. */
static void read_reals(QuantBuild *b, Node *n) {
    for (size_t i = 1; i < n->n_in; i++) {
        const Node *d = n->in[i] && n->in[i]->def ? n->in[i]->def : NULL;
        const Value *c = d && is_own_dequantize(d) ? d->in[0] : NULL;
        if (!c || !value_is_const(c))
            continue;
        Tensor *real = const_dequantize(b->a, c->data, c->type.quant);
        n->in[i] = graph_add_const(c->graph, derived_name(b, c->name, "_real"),
                                   tensor_type(b->a, real), real);
    }
}

static bool find_affine(const QuantBuild *b, const Node *n, const Value *x, Affine *f) {
    size_t data;
    if (!n->def->affine || x->type.rank < LINE_RANK - 1 || x->type.dims[CHANNELS].value <= 0)
        return false;
    f->channels = (size_t)x->type.dims[CHANNELS].value;
    f->scale = NEW_ARRAY(b->a, double, f->channels);
    f->shift = NEW_ARRAY(b->a, double, f->channels);
    OpCtx c = op_ctx(n, b->m->mute);
    return n->def->affine(&c, CHANNELS, f->channels, &data, f->scale, f->shift) && data == 0;
}

/* NULL where a scale is no normal number, or a shift none of 32 bits. */
static const Quant *weight_quant(const QuantBuild *b, const Affine *f, const Quant *x) {
    float *s = NEW_ARRAY(b->a, float, f->channels);
    for (size_t i = 0; i < f->channels; i++) {
        double alone =
            f->shift[i] == 0 ? 1 : fabs(f->shift[i]) * 0x1p-24 / (double)quant_scale(x, 0);
        s[i] = (float)(f->scale[i] == 0 ? alone : fabs(f->scale[i]) * of_scale);
        double step = (double)s[i] * (double)quant_scale(x, 0);
        if (!isnormal(s[i]) || !isnormal((float)step) || !(fabs(f->shift[i]) / step < 0x1p30))
            return NULL;
    }
    return quant_per_axis(b->a, ELEM_INT8, 0, f->channels, s, NULL);
}

static Value *weights(QuantBuild *b, const Node *n, const Affine *f, const Quant *q, int rank) {
    int64_t dims[MAX_RANK];
    uint8_t *bytes;
    for (int i = 0; i < rank; i++)
        dims[i] = i == 0 ? (int64_t)f->channels : 1;
    Tensor *t = tensor_new(b->a, ELEM_INT8, rank, dims, &bytes);
    for (size_t i = 0; i < f->channels; i++)
        elem_store_int(ELEM_INT8, bytes, i,
                       f->scale[i] == 0  ? 0
                       : f->scale[i] < 0 ? -WEIGHT
                                         : WEIGHT);
    return graph_add_const(b->m->graph, derived_name(b, n->out[0]->name, "_scale"),
                           type_quantized(tensor_type(b->a, t), q), t);
}

static Value *biases(QuantBuild *b, const Node *n, const Affine *f, const Quant *x,
                     const Quant *w) {
    int64_t dims[1] = {(int64_t)f->channels};
    uint8_t *bytes;
    Tensor *real = tensor_new(b->a, ELEM_FLOAT, 1, dims, &bytes);
    for (size_t i = 0; i < f->channels; i++)
        ((float *)(void *)bytes)[i] = (float)f->shift[i];
    const Quant *q = quant_product(b->a, x, w);
    Tensor *ints = const_bias(b->a, real, q, f->channels);
    return graph_add_const(b->m->graph, derived_name(b, n->out[0]->name, "_shift"),
                           type_quantized(tensor_type(b->a, ints), q), ints);
}

bool fill_affine(QuantBuild *b, Node *n, Value *x, Node *quantizer) {
    Affine f;
    if (n->def->affine)
        read_reals(b, n);
    if (!find_affine(b, n, x, &f))
        return false;
    const Quant *q = weight_quant(b, &f, x->type.quant);
    if (!q)
        return false;
    Value *lines = line_of(b, n, x);
    Value *w = weights(b, n, &f, q, lines->type.rank);
    Value *shift = biases(b, n, &f, x->type.quant, q);
    Node *conv = build_node(b, n, "Conv", n->name, OPERANDS(lines, w, shift));
    node_set_int(conv, "group", (int64_t)f.channels);
    line_store(b, n, conv, quantizer->out[0]);
    node_remove(n);
    node_remove(quantizer);
    return true;
}
