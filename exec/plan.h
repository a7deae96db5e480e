/* Memory layout: gives every arena buffer of a program an offset.
 *
 * Buffers whose lives (ranges of calls) overlap get disjoint, aligned ranges. A result may take the
 * place of an argument that dies in the same call where the kernel allows it. Several greedy orders
 * are tried and the smallest result kept; all choices are deterministic. Never fails. */
#ifndef QXC_EXEC_PLAN_H
#define QXC_EXEC_PLAN_H

#include "exec/program.h"

typedef struct PlanItem {
    size_t bytes;
    int first, last; /* inclusive */
    size_t offset;   /* result */
} PlanItem;

/* Sets all offsets (multiples of `align`); returns the bytes needed. */
size_t plan_offsets(Arena *a, PlanItem *items, size_t n, size_t align);
/* The largest sum of aligned sizes alive at one time. */
size_t plan_bound(Arena *a, const PlanItem *items, size_t n, size_t align);

/* Sets offsets, first, last, arena_bytes and arena_bound. `keep_all`: nothing shares memory. */
void program_plan(Arena *a, Program *p, bool keep_all);

#endif
