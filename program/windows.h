/* Rows of what a kernel slides windows over (KernelSplit SPLIT_ROWS): which rows of its operand
 * some rows of its result need, and the params that make just these. Its fields say by their names
 * how much there is. Never fails. */
#ifndef QXC_PROGRAM_WINDOWS_H
#define QXC_PROGRAM_WINDOWS_H

#include "program/program.h"

/* From the first on, up to the one before the last; of an image, or of each of several. */
typedef struct Rows {
    int32_t from, to;
} Rows;

/* The int32 field of the params that has this name; NULL where there is none. */
int32_t *call_field(const Call *c, const void *params, const char *name);
/* What it holds, `otherwise` where the kernel has no such field. */
int32_t call_get(const Call *c, const char *name, int32_t otherwise);

/* The rows of the operand that the windows of these rows of the result reach. False where they lie
 * in the padding alone. */
bool windows_reach(const Call *c, Rows out, Rows *in);
/* Sets the params, a copy of the call's that the caller may write, to those that make `out` from
 * `in`. */
void windows_take(const Call *c, const void *params, Rows out, Rows in);

#endif
