/* Numbers that can hardly be meant: told in warnings. Nothing here fails or changes anything. */
#ifndef QXC_COMPILER_DOUBTFUL_H
#define QXC_COMPILER_DOUBTFUL_H

#include "compiler/pipeline.h"

/* Of a module that was calibrated: inputs that were 0 throughout. */
void warn_of_zero_inputs(const Module *m, Diags *d);
/* Of decisions, `float ~ q`: constants far outside of what their 8 bits or more can hold. Clipping
 * less than that may be meant, as weights of few bits are by least squares. */
void warn_of_clipped(Module *m, Diags *d);

#endif
