/* The memory of a program: where in the arena each buffer lies.
 *
 * Buffers alive at one time lie apart, but a result may lie over an operand that nobody reads
 * later, as far as the kernel allows it (bind_over). Deterministic; never fails. */
#ifndef QXC_EXEC_MEMORY_H
#define QXC_EXEC_MEMORY_H

#include "exec/program.h"

/* Sets offset, first and last of the buffers in the arena, and the program's arena_... numbers.
 * `keep_all`: nothing shares memory. */
void program_plan(Arena *a, Program *p, bool keep_all);

#endif
