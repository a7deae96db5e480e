/* -time: how long each part of a run took, and the most memory the process had by its end. Parts
 * may hold others, whose time is theirs alone. All functions take NULL, which keeps nothing. */
#ifndef QXC_COMPILER_TRACE_H
#define QXC_COMPILER_TRACE_H

#include <stdio.h>

#include "support/arena.h"

typedef struct Trace Trace;

/* Time counts from here on. */
Trace *trace_new(Arena *a);
void trace_begin(Trace *t);
/* Ends the part begun last, under this name; parts of one name are added up. */
void trace_end(Trace *t, const char *name);
/* The table, in the order in which parts ended first, with what belongs to no part. */
void trace_print(Trace *t, FILE *out);

#endif
