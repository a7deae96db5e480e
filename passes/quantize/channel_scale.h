/* Dividing channels (passes/channels.h) by numbers that calibration data suggests. All memory is
 * the module's. */
#ifndef QXC_PASSES_QUANTIZE_CHANNEL_SCALE_H
#define QXC_PASSES_QUANTIZE_CHANNEL_SCALE_H

#include "passes/channels.h"
#include "passes/pass.h"

/* largest[i] becomes the largest |x| of channel i in the data of one sample, if that is larger than
 * it was. Numbers that are not finite do not count. */
void channels_look(const ChannelSet *s, Type type, const void *data, float *largest);
/* The same in one run over the calibration data, of largest[id] of each value that has one, which
 * starts with zeros. False after diagnostics of the shapes, the program or the data. */
bool channels_observe(const Channels *ch, PassContext *c, float **largest);

/* Divides each class of channels by scale[class] > 0: weights, biases and constants of what makes
 * them, and multiplies the weights that read them. What changes is a new constant, made by `pass`
 * from the old; statistics of what is scaled are dropped. Returns how many values have new numbers.
 */
size_t channels_rescale(const Channels *ch, const double *scale, const char *pass);

#endif
