/* Integers of less than a byte in bytes, for QOperators; see lower_widen.c. */
#ifndef QXC_PASSES_LOWER_LOWER_WIDEN_H
#define QXC_PASSES_LOWER_LOWER_WIDEN_H

#include "passes/quant_build.h"

/* Changes types and constants of a module in true-quant form; what it computes stays. A note to `d`
 * says how much larger the constants become. Memory is the module's; nothing fails. */
void lower_widen(Module *m, Diags *d);

#endif
