/* A file of -kernels: which functions of a project are called in place of our kernels, and for
 * which steps. It is written like a target's page; docs/c.md has its words. */
#ifndef QXC_TARGET_KERNELS_H
#define QXC_TARGET_KERNELS_H

#include "program/foreign.h"
#include "support/diag.h"

/* From a text, which messages call `name`; NULL after errors, of which one run tells all. */
const ForeignKernels *kernels_read(Arena *a, Diags *d, const char *name, Str text);

#endif
