/* The quantization of a constant weight, from its numbers and the scheme. Belongs to the module's
 * arena; what was decided against the scheme is said as a warning or remark. No failure. */
#ifndef QXC_PASSES_WEIGHT_QUANT_H
#define QXC_PASSES_WEIGHT_QUANT_H

#include "passes/pass.h"

/* `axis`: output channels of the weight, -1 where there can be no scale for each. With
 * -weights="... block(N)" there is one scale for N elements along the axis that `n` sums over. */
Quant *weight_quant(PassContext *c, const Node *n, const Value *w, int axis);

#endif
