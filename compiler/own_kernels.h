/* -kernels=FILE: functions of the user's in place of our kernels. */
#ifndef QXC_COMPILER_OWN_KERNELS_H
#define QXC_COMPILER_OWN_KERNELS_H

#include "compiler/pipeline.h"
#include "program/foreign.h"

/* Sets j->kernels where a file is given; false after errors. */
bool own_kernels_read(Job *j, Arena *a);
/* How many steps call each function; notes about entries that no step has. */
void own_kernels_tell(const Program *p, const ForeignKernels *k, Diags *d);

#endif
