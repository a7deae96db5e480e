/* The quantization of a constant weight, from its numbers and the scheme. Belongs to the module's
 * arena; what was decided against the scheme is said as a warning or remark. No failure. */
#ifndef QXC_PASSES_QUANTIZE_WEIGHT_QUANT_H
#define QXC_PASSES_QUANTIZE_WEIGHT_QUANT_H

#include "passes/quantize/choice.h"

/* `axis`: output channels of the weight, -1 where there can be no scale for each. With a block size
 * there is one scale for so many elements along the axis that `n` sums over. */
Quant *weight_quant(PassContext *c, const Choice *choice, const Node *n, const Value *w, int axis);

/* The smallest scale of channel `c` of so many, with integers of the range, with which the node's
 * bias and sums fit the accumulator; 0 where there is none. */
double weight_least_scale(const Choice *choice, const Node *n, IntRange r, size_t c,
                          size_t channels);

/* A node that is no product, but has a constant like weights (float, of rank 2 and more) that stays
 * as it is: why; NULL of others. For operators without a rule of their own alone: the constants of
 * an Add are no weights. */
const char *why_unlike_product(const Node *n);

#endif
