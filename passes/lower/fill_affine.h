/* Scales and shifts of channels on integers, for fill-gaps. */
#ifndef QXC_PASSES_LOWER_FILL_AFFINE_H
#define QXC_PASSES_LOWER_FILL_AFFINE_H

#include "passes/quant_build.h"

/* `n` reads `x` dequantized, integers of one scale, and `quantizer` alone reads what it yields: a
 * Conv on integers takes the place of both where `n` scales and shifts channels. False, and no
 * change, where it does not. */
bool fill_affine(QuantBuild *b, Node *n, Value *x, Node *quantizer);

#endif
