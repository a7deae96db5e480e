/* See loosen.c. */
#ifndef QXC_PASSES_QUANTIZE_LOOSEN_H
#define QXC_PASSES_QUANTIZE_LOOSEN_H

#include "passes/pass.h"

/* Whether types are quantized, and decisions say as much as they do: no parameters that are
 * computed at run time, no sums, no integers at inputs and outputs or in bodies. */
bool can_loosen(Module *m);
/* NULL where that is so; else words behind the name of a value, `at`, which is NULL, and the words
 * "", where nothing is quantized in types. */
const char *why_not_loosen(Module *m, const Value **at);

#endif
