/* -max-arena=BYTES. */
#ifndef QXC_COMPILER_MAX_ARENA_H
#define QXC_COMPILER_MAX_ARENA_H

#include "exec/exec.h"

/* A program of the same module whose arena has at most so many bytes: `p`, built with `o`, or one
 * with slower ways, which a note tells, and `o` then holds. NULL after an error that names the step
 * with most memory alive, and what that is. */
Program *fit_arena(Module *m, Program *p, ProgramOptions *o, size_t bytes, Diags *d);

#endif
