/* What rounding costs the outputs of a module with decisions. */
#ifndef QXC_PASSES_QUANTIZE_OUTPUT_ERRORS_H
#define QXC_PASSES_QUANTIZE_OUTPUT_ERRORS_H

#include "passes/pass.h"

/* Runs the model on up to `most` samples of the calibration data, in float and with each value
 * rounded as its `~` says, within shapes_fix and shapes_restore. `error` and `measured` are by
 * value id: of each float output that both compute the mean squared difference. Only what the
 * outputs need is run. False after diagnostics of the program or the data. */
bool output_errors(Module *m, PassContext *c, size_t most, double *error, bool *measured);

#endif
