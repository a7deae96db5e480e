/* Memory layout: where in one block of memory items lie that are alive from one step to another.
 *
 * Items whose lives overlap get disjoint, aligned ranges, but where an overlay lets one lie over
 * another. All choices are deterministic; what is allocated belongs to the arena that is passed.
 * Never fails. */
#ifndef QXC_EXEC_PLAN_H
#define QXC_EXEC_PLAN_H

#include "support/arena.h"

typedef struct PlanItem {
    size_t bytes;
    int first, last; /* inclusive */
    size_t offset;   /* result */
} PlanItem;

/* A step reads `under` for the last time and writes `over` for the first, or steps that take turns
 * do: they may share bytes, where `over` begins exactly where `under` begins (exact), or at least
 * `lead` bytes before it; a negative lead: at most so many after it. */
typedef struct PlanOverlay {
    uint32_t under, over; /* items */
    bool exact;
    int64_t lead;
} PlanOverlay;

typedef struct Plan {
    PlanItem *items;
    size_t n;
    const PlanOverlay *overlays;
    size_t n_overlays;
    size_t align;
    bool quick; /* the best of the simple layouts will do, nothing better is looked for */
} Plan;

/* Sets all offsets (multiples of the alignment); returns the bytes needed. */
size_t plan_offsets(Arena *a, const Plan *plan);
/* By step, of the first `steps` with which all items end: the sum of aligned sizes alive, less what
 * overlays can save. */
size_t *plan_loads(Arena *a, const Plan *plan, size_t steps);
/* The largest of them: no layout needs less. */
size_t plan_bound(Arena *a, const Plan *plan);
/* How many bytes less the two of an overlay may take than their sizes together, all aligned. */
size_t plan_saving(size_t under, size_t over, const PlanOverlay *o, size_t align);

#endif
