/* Calls that depend on constants alone: weights brought into the order that a kernel wants, numbers
 * taken apart. What they write is computed here instead of by each run. */
#ifndef QXC_EXEC_CONST_CALLS_H
#define QXC_EXEC_CONST_CALLS_H

#include "program/program.h"

/* Runs them and takes them out; their results are constants. Those stay whose results are larger
 * than what they read, as tables of constants would grow (weights to floats). Never fails. */
void program_run_consts(Arena *a, Program *p);

#endif
