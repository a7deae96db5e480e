/* See loosen.c. */
#ifndef QXC_PASSES_QUANTIZE_LOOSEN_H
#define QXC_PASSES_QUANTIZE_LOOSEN_H

#include "passes/pass.h"

/* Whether types are quantized, and decisions say as much as they do: no parameters that are
 * computed at run time, no sums, no integers at inputs and outputs or in bodies. */
bool can_loosen(Module *m);
/* What stands against it, as words behind the name of a value, `at`; NULL where nothing does, or no
 * type is quantized. */
const char *why_not_loosen(Module *m, const Value **at);

#endif
