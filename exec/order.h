/* The order of a program's calls: nodes may run in any order that their values allow, and some
 * orders need less memory than others. Deterministic; never fails. */
#ifndef QXC_EXEC_ORDER_H
#define QXC_EXEC_ORDER_H

#include "program/program.h"

/* Reorders the calls where that lowers the most memory that is alive at a time; else they stay. */
void program_order(Arena *a, Program *p);

#endif
