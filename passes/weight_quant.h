/* The quantization of a constant weight, from its numbers and the scheme. Belongs to the module's
 * arena; what was decided against the scheme is said as a warning or remark. No failure. */
#ifndef QXC_PASSES_WEIGHT_QUANT_H
#define QXC_PASSES_WEIGHT_QUANT_H

#include "passes/choice.h"

/* `axis`: output channels of the weight, -1 where there can be no scale for each. With a block size
 * there is one scale for so many elements along the axis that `n` sums over. */
Quant *weight_quant(PassContext *c, const Choice *choice, const Node *n, const Value *w, int axis);

#endif
