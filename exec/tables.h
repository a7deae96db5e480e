/* Functions of one 8-bit value: calls that map elements alone (KernelDef.n_each) from one tensor of
 * 8 bits and constants to another tensor, over any steps in between, are one table of 256 entries.
 * Its entries are what the kernels themselves make of the 256 values. */
#ifndef QXC_EXEC_TABLES_H
#define QXC_EXEC_TABLES_H

#include "program/program.h"

/* Puts a table in the place of the last of such calls, where nothing else reads what the others
 * make: those are dead from now on (exec/dead.h). Outputs are known and constants are computed.
 * Never fails. */
void program_make_tables(Arena *a, Program *p);

#endif
