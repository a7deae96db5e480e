/* See passes/quantize/weight_error.h. */
#include "passes/quantize/weight_error.h"
#include "passes/quantize/choice.h"
#include "passes/edit.h"
#include "passes/quantize/open.h"

bool weight_matrix(const Node *n, const MacData *data, Diags *d, WeightMatrix *w) {
    const QuantRule *rule = &n->def->quant;
    const Value *v = n->in[rule->mac.weight];
    OpCtx c = op_ctx(n, d);
    int axis = quant_weight_axis(rule, &c);
    if (!edit_tilde(v) || !edit_float_const(v) || axis < 0 || axis >= v->data->rank)
        return false;
    AxisWalk k = edit_axis(v->data->rank, v->data->dims, axis);
    *w = (WeightMatrix){.data = v->data,
                        .quant = v->type.quant,
                        .channels = k.axis,
                        .per_group = k.axis / data->groups,
                        .terms = k.outer * k.inner,
                        .inner = k.inner,
                        .axis = k.axis,
                        .dim = axis};
    return w->terms == data->terms && w->per_group > 0;
}

float weight_rounded(const WeightMatrix *w, size_t at, double x) {
    const Quant *q = w->quant;
    size_t e = q->n_scale == 1 ? 0 : quant_index(q, w->data->rank, w->data->dims, at);
    int64_t zp = quant_zp(q, e);
    int64_t i = quant_round((float)x, quant_scale(q, e), zp, quant_lo(q), quant_hi(q));
    return (float)(i - zp) * quant_scale(q, e);
}

/* What the sums of `channel` gain on average. */
static double mean_error(const WeightMatrix *w, const MacData *data, size_t channel,
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

bool weight_is_few(const Quant *q) {
    return quant_hi(q) - quant_lo(q) < 64;
}

Mend mend_new(Module *m, PassContext *c, const char *pass) {
    return (Mend){
        .c = c, .names = unique_names_new(m), .uses = uses_new(m), .pass = pass, .arena = m->arena};
}

static void round_run(const WeightMatrix *w, const QuantRuns *r, float *x) {
    const Quant *q = w->quant;
    int64_t zp = quant_zp(q, r->each ? 0 : r->entry);
    float lo = (float)(quant_lo(q) - zp), hi = (float)(quant_hi(q) - zp);
    if (r->each && q->n_scale > 1 && q->n_zp > 1)
        for (size_t i = 0; i < r->n; i++)
            x[i] = weight_rounded(w, r->at + i, (double)x[i]);
    else if (r->each && q->n_scale > 1)
        row_round_scales(x, r->n, q->scale + r->entry, lo, hi);
    else
        row_round(x, r->n, quant_scale(q, r->entry), lo, hi);
}

float *mend_rounded(Mend *by, const WeightMatrix *w) {
    const Tensor *t = w->data;
    bool rows = elem_bits(w->quant->storage) <= 16 && !quant_is_wide(w->quant);
    if (by->cap < t->count)
        by->rounded = NEW_ARRAY(by->arena, float, by->cap = t->count);
    for (size_t i = 0; i < t->count; i++)
        by->rounded[i] = (float)tensor_float(t, i);
    for (size_t i = 0; !rows && i < t->count; i++)
        by->rounded[i] = weight_rounded(w, i, (double)by->rounded[i]);
    for (QuantRuns r = quant_runs(w->quant, t->rank, t->dims, 0, t->count);
         rows && quant_runs_next(&r);)
        round_run(w, &r, by->rounded + r.at);
    return by->rounded;
}

/* Whether what rounding costs was taken off it before: for a weight that had these integers
 * already. Of other integers the error is another. */
static bool is_mended(const Mend *by, const Node *n, const WeightMatrix *w) {
    const Value *b = node_input(n, (size_t)n->def->quant.mac.bias);
    const OpenValue *o = opening_of(by->c, n->in[n->def->quant.mac.weight]);
    const Quant *was = o ? o->line : NULL;
    return b && (pass_made(&b->from, PASS_bias_correction) || pass_made(&b->from, PASS_adaround)) &&
           was && was->storage && quant_lo(was) == quant_lo(w->quant) &&
           quant_hi(was) == quant_hi(w->quant);
}

double *mend_bias(const Mend *by, const Node *n, const WeightMatrix *w) {
    bool stays = !n->def->quant.mac.bias || choice_float_bias(by->c, n) || is_mended(by, n, w);
    return stays ? NULL : edit_bias(n, w->channels);
}

void mend_set_bias(Mend *by, Node *n, const WeightMatrix *w, const MacData *data,
                   const float *numbers, double *bias) {
    size_t at = (size_t)n->def->quant.mac.bias;
    Value *old = node_input(n, at);
    bool changed = false;
    for (size_t c = 0; c < w->channels; c++) {
        double e = mean_error(w, data, c, numbers);
        bias[c] -= e;
        changed = changed || e != 0;
    }
    if (!changed)
        return;
    edit_set_bias(n, by->names, bias, w->channels, by->pass, n);
    ARENA_PUSH(by->arena, by->biases, by->n_biases, by->cap_biases, ((NewBias){n, old}));
}

static Value **bias_of(const NewBias *b) {
    return &b->node->in[b->node->def->quant.mac.bias];
}

void mend_keep_biases(const Mend *by) {
    for (size_t i = 0; i < by->n_biases; i++)
        if (by->biases[i].other)
            edit_take_over(by->uses, by->biases[i].other, *bias_of(&by->biases[i]));
}

void mend_swap_biases(Mend *by) {
    for (size_t i = 0; i < by->n_biases; i++) {
        Value **now = bias_of(&by->biases[i]), *other = by->biases[i].other;
        by->biases[i].other = *now;
        *now = other;
    }
}
