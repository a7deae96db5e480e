/* Calls in parts, for threads: each part makes some rows of the result, with params of its own, the
 * same kernel, and the bits that the whole call gives. Runners make the whole call; emitted C lets
 * the parts run side by side (backend/c/parts.c). */
#ifndef QXC_PROGRAM_SPLIT_H
#define QXC_PROGRAM_SPLIT_H

#include "program/program.h"

enum { SPLIT_MOST = 64 };

/* Gives calls that have enough to do up to `parts` parts (2 to SPLIT_MOST). Each part has scratch
 * of its own, and the results of such calls lie over no operand whose other rows are read later:
 * the arena grows. Before the memory is planned; what is made is the arena's. Never fails. */
void program_split(Arena *a, Program *p, int parts);

/* Whether some call has parts. */
bool program_is_split(const Program *p);

#endif
