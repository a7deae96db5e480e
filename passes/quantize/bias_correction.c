/* Takes off each bias what rounding weights and operand adds to the sum on average:
 *
 *   b[c] += sum_k W[c,k] E[x[k]] - Wq[c,k] E[xq[k]]
 *
 * with the means of what each weight meets on calibration data, zeros of padding included, in the
 * float model and rounded (Nagel, van Baalen, Blankevoort, Welling 2019, section 4.2, with measured
 * in place of assumed means, and with the operand's own rounding). The error of a layer is
 * corrected where it arises, so nothing is corrected twice. */
#include "passes/edit.h"
#include "passes/quantize/weight_error.h"

static void correct(void *ctx, Node *n, const MacData *data) {
    Mend *by = ctx;
    WeightMatrix w;
    double *bias = weight_matrix(n, data, by->c->d, &w) ? mend_bias(by, n, &w) : NULL;
    if (bias)
        mend_set_bias(by, n, &w, data, mend_rounded(by, &w), bias);
}

bool pass_bias_correction(Module *m, PassContext *c) {
    Mend by = mend_new(m, c, "bias-correction");
    bool ok = mac_data(m, c, by.pass, NULL, correct, &by);
    edit_sweep(m);
    return ok;
}
