/* Calls that map elements alone, looked at and run on other elements. */
#ifndef QXC_EXEC_EACH_H
#define QXC_EXEC_EACH_H

#include "program/program.h"

/* How many elements the call maps where every argument that is no constant gives it that many, one
 * after the other, and of every constant it reads one; 0: it is no such call. The result is its
 * last argument. */
int64_t call_each(const Program *p, const Call *c);

/* Calls the kernel on `n` elements: args[i] has the n elements of argument i, or NULL where that is
 * a constant; `y` has room for the results. */
void call_each_on(Arena *a, const Program *p, const Call *c, int32_t n, void *const *args, void *y);

#endif
