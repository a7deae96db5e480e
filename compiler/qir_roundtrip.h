/* The check behind -verify-roundtrip: a module printed as .qir, read and printed again gives the
 * same text. */
#ifndef QXC_COMPILER_QIR_ROUNDTRIP_H
#define QXC_COMPILER_QIR_ROUNDTRIP_H

#include "ir/ir.h"

/* False after a diagnostic: the text could not be read, or the first line that differs. */
bool qir_roundtrip_check(const Module *m, Diags *d);

#endif
