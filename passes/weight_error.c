/* See passes/weight_error.h. */
#include "passes/weight_error.h"
#include "passes/edit.h"

bool weight_matrix(const Node *n, const MacData *data, Diags *d, WeightMatrix *w) {
    const QuantRule *rule = &n->def->quant;
    const Value *v = n->in[rule->weight];
    OpCtx c = op_ctx(n, d);
    int axis = rule->weight_axis ? rule->weight_axis(&c) : -1;
    if (!edit_tilde(v) || !edit_float_const(v) || axis < 0 || axis >= v->data->rank)
        return false;
    AxisWalk k = edit_axis(v->data->rank, v->data->dims, axis);
    *w = (WeightMatrix){.data = v->data,
                        .quant = v->type.quant,
                        .channels = k.axis,
                        .per_group = k.axis / data->groups,
                        .terms = k.outer * k.inner,
                        .inner = k.inner,
                        .axis = k.axis};
    return w->terms == data->terms && w->per_group > 0;
}

float weight_rounded(const WeightMatrix *w, size_t at, double x) {
    const Quant *q = w->quant;
    size_t e = q->n_scale == 1 ? 0 : quant_index(q, w->data->rank, w->data->dims, at);
    int64_t zp = quant_zp(q, e);
    int64_t i = quant_round((float)x, quant_scale(q, e), zp, quant_lo(q), quant_hi(q));
    return (float)(i - zp) * quant_scale(q, e);
}

double weight_mean_error(const WeightMatrix *w, const MacData *data, size_t channel,
                         const float *by) {
    size_t group = channel / w->per_group;
    const double *mean = data->mean + group * w->terms, *real = data->real + group * w->terms;
    double sum = 0;
    for (size_t t = 0; t < w->terms; t++) {
        size_t at = weight_at(w, channel, t);
        sum += (double)by[at] * mean[t] - tensor_float(w->data, at) * real[t];
    }
    return sum;
}
