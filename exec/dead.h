/* Calls whose results nobody reads: what an operator took out of its operand's maker as it was
 * bound (the scale of a LayerNormalization out of DequantizeLinear), results that nobody asks for.
 */
#ifndef QXC_EXEC_DEAD_H
#define QXC_EXEC_DEAD_H

#include "program/program.h"

/* Takes them out, with what only they read. Outputs are known. Never fails. */
void program_drop_dead(Arena *a, Program *p);

#endif
