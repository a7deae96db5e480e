/* Numbers that are never 0 and must not become 0: what is taken the logarithm of, or divided by.
 * Every grid holds 0, and small numbers are rounded to it, so that the result would be infinite.
 * Pure questions. */
#ifndef QXC_PASSES_QUANTIZE_SINGULAR_H
#define QXC_PASSES_QUANTIZE_SINGULAR_H

#include "passes/pass.h"

/* The operator that `v`, whose numbers come near 0 in the statistics without being it, breaks where
 * they become 0,
 * itself or through what keeps 0 (Sqrt, data movers); NULL: none. */
const Node *zero_breaks(const Uses *uses, const Value *v);

#endif
