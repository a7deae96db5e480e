/* The bias of a Conv, Gemm or MatMul that computes on integers. */
#ifndef QXC_PASSES_LOWER_TRUE_QUANT_BIAS_H
#define QXC_PASSES_LOWER_TRUE_QUANT_BIAS_H

#include "passes/quant_build.h"

/* Makes the bias int32 with the product of the scales of the node's input and weights, so that an
 * edited scale carries it along. It stays float, or becomes so, where int32 does not hold it and
 * where steps of the product are too coarse for the result; a remark or a note tells what was done.
 */
void bias_to_int(QuantBuild *b, PassContext *c, Node *n);

#endif
