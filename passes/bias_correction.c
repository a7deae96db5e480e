/* Takes off each bias what rounding weights and operand adds to the sum on average:
 *
 *   b[c] += sum_k W[c,k] E[x[k]] - Wq[c,k] E[xq[k]]
 *
 * with the means of what each weight meets on calibration data, zeros of padding included, in the
 * float model and rounded (Nagel, van Baalen, Blankevoort, Welling 2019, section 4.2, with measured
 * in place of assumed means, and with the operand's own rounding). The error of a layer is
 * corrected where it arises, so nothing is corrected twice. */
#include "passes/choice.h"
#include "passes/edit.h"
#include "passes/weight_error.h"

typedef struct Correct {
    PassContext *c;
    UniqueNames *names;
    Uses *uses;
} Correct;

/* A bias that nobody else reads keeps its name: the text is the same with and without data, but
 * for the numbers. */
static void keep_name(const Correct *by, Value *old, Value *now) {
    const Use *use;
    if (!old || uses_of(by->uses, old, &use) != 1)
        return;
    Str name = old->name;
    old->name = now->name;
    now->name = name;
}

static void correct(void *ctx, Node *n, const MacData *data) {
    Correct *by = ctx;
    WeightMatrix w;
    if (!n->def->quant.bias || choice_float_bias(by->c, n) || !weight_matrix(n, data, by->c->d, &w))
        return;
    double *bias = edit_bias(n, w.channels);
    if (!bias)
        return;
    float *rounded = NEW_ARRAY(n->graph->module->arena, float, w.data->count);
    for (size_t i = 0; i < w.data->count; i++)
        rounded[i] = weight_rounded(&w, i, tensor_float(w.data, i));
    bool changed = false;
    for (size_t c = 0; c < w.channels; c++) {
        double e = weight_mean_error(&w, data, c, rounded);
        bias[c] -= e;
        changed = changed || e != 0;
    }
    if (!changed)
        return;
    size_t at = (size_t)n->def->quant.bias;
    Value *old = node_input(n, at);
    edit_set_bias(n, by->names, bias, w.channels, "bias-correction", n);
    keep_name(by, old, n->in[at]);
}

bool pass_bias_correction(Module *m, PassContext *c) {
    Correct by = {c, unique_names_new(m), uses_new(m)};
    bool ok = mac_data(m, c, false, correct, &by);
    edit_sweep(m);
    return ok;
}
