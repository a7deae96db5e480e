/* Tables that hold the weights of a MatMulNBits (passes/quantize/tie_tables.c). */
#ifndef QXC_PASSES_LOWER_LOWER_TIED_H
#define QXC_PASSES_LOWER_LOWER_TIED_H

#include "passes/quant_build.h"

/* Weights that lower-nbits has packed: B, scales and zero points (or NULL) of MatMulNBits. */
typedef struct Packed {
    const Value *of; /* what they were before */
    Value *b, *scales, *zero_points;
    int64_t k, n, block;
    int bits;
    bool transposed; /* `of` is [n, k] */
    Value *rows;     /* B as rows, where a Gather was met last; or NULL */
} Packed;

/* Looks rows up in packed weights where the Gather does in what these were; `p` is of that
 * constant. NULL, or why the form is not GatherBlockQuantized's. */
const char *lower_tied(QuantBuild *b, const Uses *uses, Node *gather, Packed *p);

#endif
