/* Which nodes of a fake-quant graph can compute on integers. */
#ifndef QXC_PASSES_LOWER_INTEGER_RULE_H
#define QXC_PASSES_LOWER_INTEGER_RULE_H

#include "passes/pass.h"

/* NULL when the node computes on integers, else why it stays float. `ints` holds the integer
 * version of each value that has one already, by value id, `n_ints` entries. */
const char *integer_rule(const Node *n, Value *const *ints, size_t n_ints, Diags *d);

#endif
