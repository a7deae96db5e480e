/* Values of which only mean and deviation are known: their range is taken as so many deviations
 * around the mean. */
#ifndef QXC_PASSES_QUANTIZE_SPREAD_H
#define QXC_PASSES_QUANTIZE_SPREAD_H

#include "passes/pass.h"

enum { SPREAD_TIMES = 4 };

/* Statistics without min and max get both, within what a Relu or Clip leaves, and are marked: they
 * were not seen. */
void spread_assume(Module *m, const PassContext *c);
/* Takes them away again; a remark tells of what was quantized by them. */
void spread_forget(Module *m, const PassContext *c);

#endif
