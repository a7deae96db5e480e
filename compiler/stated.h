/* Reads what nodes state of the quantization that was decided (passes/stated.h). */
#ifndef QXC_COMPILER_STATED_H
#define QXC_COMPILER_STATED_H

#include "ir/ir.h"

bool module_has_stated(Module *m);
/* The values get the types, `float ~ int8q<0.1, 3>`, and the metadata goes. What stands beside
 * annotations comes after these. False after diagnostics, of all nodes. */
bool stated_take(Module *m, Diags *d);

#endif
