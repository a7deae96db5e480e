/* Dividing channels (passes/channels.h) by numbers that calibration data suggests. All memory is
 * the module's. */
#ifndef QXC_PASSES_QUANTIZE_CHANNEL_SCALE_H
#define QXC_PASSES_QUANTIZE_CHANNEL_SCALE_H

#include "passes/channels.h"
#include "passes/pass.h"

/* One run over `most` samples of the calibration data (0: all): largest[id] of a value, where it is
 * not NULL, gets the largest |x| of each of the value's channels. It starts with zeros; NaN does
 * not count. False after diagnostics of the shapes, the program or the data. */
bool channels_observe(const Channels *ch, PassContext *c, size_t most, double **largest);

/* Divides each class of channels by scale[class] > 0: weights, biases and constants of what makes
 * them, and multiplies the weights that read them. What changes is a new constant, made by `pass`
 * from the old; statistics of what is scaled are dropped. Returns how many values have new numbers.
 */
size_t channels_rescale(const Channels *ch, const double *scale, const char *pass);

#endif
