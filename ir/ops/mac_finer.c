/* A float bias where a unit of the sums is many steps of the result: rounded to whole units it
 * would move results by whole steps. Then the weights are multiplied with a power of two, which 16
 * bits hold, and their scale is divided by it: a unit is as much smaller, sums are int64. See
 * mac.h. */
#include "ir/ops/mac.h"

#include <math.h>
#include <stdlib.h>

static const double COARSE = 0.25, FINE = 0.0625; /* steps of the result */

static double real_element(const BiasUnits *u, size_t i) {
    const Tensor *t = u->bias;
    if (!u->q)
        return u->factor * tensor_float(t, i);
    size_t k = quant_index(u->q, t->rank, t->dims, i);
    return u->factor * (double)(tensor_int(t, i) - quant_zp(u->q, k)) *
           (double)quant_scale(u->q, k);
}

double mac_bias_error(const BiasUnits *u, int bits) {
    size_t last = u->bias->rank ? (size_t)u->bias->dims[u->bias->rank - 1] : 1;
    double worst = 0;
    for (size_t i = 0; i < u->bias->count; i++) {
        double v = real_element(u, i);
        for (size_t c = 0; c < u->w->n_scale; c++) {
            double unit = ldexp((double)(quant_scale(u->x, 0) * quant_scale(u->w, c)), -bits);
            if ((last == 1 || c == i % last || u->w->n_scale == 1) && unit > 0)
                worst = fmax(worst, fabs(v - rint(v / unit) * unit));
        }
    }
    return worst * fabs(u->alpha / (double)quant_scale(u->y, 0));
}

/* How often all weights, and their zero points, can be doubled within int16. */
static int room(const Value *w) {
    const Quant *q = op_quant(w);
    const Tensor *t = value_data(w);
    int64_t most = 1;
    int bits = 0;
    if (!t || !t->data || elem_bits(q->storage) > 16)
        return 0;
    for (size_t i = 0; i < t->count; i++)
        most = llabs(tensor_int(t, i)) > most ? llabs(tensor_int(t, i)) : most;
    for (size_t i = 0; i < q->n_zp; i++)
        most = llabs(q->zp[i]) > most ? llabs(q->zp[i]) : most;
    while (most << (bits + 1) <= INT16_MAX)
        bits++;
    for (size_t i = 0; i < q->n_scale; i++)
        while (bits && !isnormal(ldexpf(quant_scale(q, i), -bits)))
            bits--;
    return bits;
}

int mac_bias_bits(const BiasUnits *u, const Value *w) {
    if (elem_bits(u->y->storage) != 16 || elem_bits(u->x->storage) > 16 ||
        mac_bias_error(u, 0) <= COARSE)
        return 0;
    int most = room(w), bits = most ? 1 : 0;
    while (bits < most && mac_bias_error(u, bits) > FINE)
        bits++;
    return bits;
}

bool mac_bias_units(const Node *n, BiasUnits *u) {
    const QuantRule *r = &n->def->quant;
    const Value *w = node_input(n, (size_t)r->mac.weight);
    const Value *bias = r->mac.bias ? node_input(n, (size_t)r->mac.bias) : NULL;
    *u = (BiasUnits){.x = op_quant(n->in[0]), .y = op_quant(n->out[0]), .alpha = 1, .factor = 1};
    u->w = w ? op_quant(w) : NULL;
    u->bias = bias && !op_quant(bias) ? value_data(bias) : NULL;
    if (r->mac.bias_factor) {
        u->alpha = (double)node_float(n, r->mac.weight_factor, 1.0F);
        u->factor = (double)node_float(n, r->mac.bias_factor, 1.0F) / u->alpha;
    }
    return u->bias && u->bias->data && elem_is_float(u->bias->elem) && quant_plain(u->x) &&
           quant_plain(u->y) && u->w && u->w->kind == QUANT_PARAMS && !quant_is_blocked(u->w) &&
           isfinite(u->factor);
}

Value *mac_finer_weights(Arena *a, const Value *w, int bits) {
    const Tensor *t = value_data(w);
    uint8_t *bytes;
    Tensor *data = tensor_new(a, ELEM_INT16, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++)
        elem_store_int(ELEM_INT16, bytes, i, tensor_int(t, i) * ((int64_t)1 << bits));
    Quant *q = quant_copy(a, op_quant(w));
    float *scale = NEW_ARRAY(a, float, q->n_scale);
    int64_t *zp = NEW_ARRAY(a, int64_t, q->n_zp + 1);
    for (size_t i = 0; i < q->n_scale; i++)
        scale[i] = ldexpf(quant_scale(q, i), -bits);
    for (size_t i = 0; i < q->n_zp; i++)
        zp[i] = q->zp[i] * ((int64_t)1 << bits);
    q->storage = ELEM_INT16;
    q->has_range = false;
    q->scale = scale;
    q->zp = zp;
    Value *v = arena_copy(a, w, sizeof *w);
    v->type = type_quantized(w->type, q);
    v->kind = VALUE_CONST;
    v->data = data;
    v->def = NULL;
    return v;
}
