/* Which of several ways to round a weight is best on sums that none of them was made from. */
#ifndef QXC_PASSES_QUANTIZE_HELD_OUT_H
#define QXC_PASSES_QUANTIZE_HELD_OUT_H

#include "passes/quantize/weight_error.h"

/* The sum of squares of what the node's sums with `numbers` in place of its weights, and with
 * rounded operands, are away from those of the float model, over data->held and all channels. With
 * `centered` a bias takes off each channel what data->mean and data->real say of it. `a` is for
 * scratch; no failure. */
double held_out_error(const WeightMatrix *w, const MacData *data, const float *numbers,
                      bool centered, Arena *a);

/* Once all is judged: data->mean and data->real become those of the sums that were held, too. */
void held_out_join(const MacData *data);

#endif
