/* What masks in front of a Softmax need not tell apart.
 *
 * Attention adds -10000 (or the lowest float, or -inf) to scores that are not to count, or puts it
 * in their place. A range with that number in it leaves no steps for the scores. Where each row has
 * an element that no mask hides, everything below a certain number counts for nothing behind the
 * Softmax: integers may end there. */
#ifndef QXC_PASSES_QUANTIZE_MASKS_H
#define QXC_PASSES_QUANTIZE_MASKS_H

#include "passes/pass.h"

/* The range of a statistic or a float constant, as edit_range gives it, cut below at the least
 * number that shows; such a statistic may begin at -inf. `*cut` says whether it was cut. */
bool masked_range(const Uses *uses, const Value *v, float *min, float *max, bool *cut);

/* That least number of a value with such a statistic or constant, -infinity where nothing is to be
 * cut: as CalibOptions.counts_from. */
float masked_from(const void *uses, const Value *v);

#endif
