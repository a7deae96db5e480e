/* Made-up data, the same on every machine. */
#ifndef QXC_EXEC_RANDOM_H
#define QXC_EXEC_RANDOM_H

#include "ir/ir.h"

#define RANDOM_SEED 0x9e3779b97f4a7c15u

/* Fills `dst` with `count` elements such as the input `v` may hold, and moves `*state` on: floats
 * from a normal distribution, or uniform in the range of its stat or quantization; integers uniform
 * in their range. */
void random_elements(uint64_t *state, const Value *v, void *dst, size_t count);

#endif
