/* The two halves of program_build (exec/exec.h), for what comes between them. */
#ifndef QXC_EXEC_BUILD_H
#define QXC_EXEC_BUILD_H

#include "exec/exec.h"
#include "program/binder.h"

/* All calls, in the order of nodes; the arena has no places yet. NULL after diagnostics. */
Binder *program_bind(Module *m, const ProgramOptions *o, Diags *d);
/* Computes ahead what is constant, drops what nobody needs, and lays the arena out. */
void program_place(Program *p, const ProgramOptions *o);

/* Buffer `length`, one int64 that says how long output i is, becomes an output, too. */
void program_count_output(Binder *b, size_t i, int length);

#endif
