/* Which calls of a program run in bands of rows (program/bands.h), so that its arena is small.
 * Deterministic; never fails. */
#ifndef QXC_EXEC_BANDS_H
#define QXC_EXEC_BANDS_H

#include "program/program.h"

/* Calls are put into bands where the most memory that is in use at a time becomes less by it, and
 * into as few bands as that takes: a Conv and the pool behind it, where that saves an eighth or
 * more, and with `chains` any calls in a row that slide windows. With `enough` bytes no less is
 * looked for.
 * Calls are in their last order; before the memory is planned. */
void program_band(Arena *a, Program *p, bool chains, size_t enough);

#endif
