/* What of a float model has no integer form, whatever data say (-integer-only). */
#ifndef QXC_COMPILER_NO_INTEGERS_H
#define QXC_COMPILER_NO_INTEGERS_H

#include "ir/ops/op.h"

/* Reports every node that computes in floats by an operator without integer form. Whether there was
 * one. */
bool no_integers(Module *m, Diags *d);

/* Reports every node that computes on integers whose scale is computed at run time, which takes
 * floating point. Whether there was one. */
bool dynamic_scales(Module *m, Diags *d);

#endif
