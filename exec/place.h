/* One layout of items (exec/plan.h), built by placing one after the other, each in the gap that
 * fits best among those placed before. Belongs to the arena it was made in; cannot fail. */
#ifndef QXC_EXEC_PLACE_H
#define QXC_EXEC_PLACE_H

#include "exec/plan.h"

/* Offsets from which an item is kept away, both ends being free. */
typedef struct Gap {
    int64_t low, high;
} Gap;

typedef struct Layout {
    const Plan *plan;
    uint32_t *placed; /* by offset */
    size_t n_placed, total;
    struct Overlays *overlays; /* by item */
    Gap *gaps;                 /* room for those of one item */
} Layout;

size_t plan_aligned(size_t bytes, size_t align);
int64_t plan_lead(const PlanOverlay *o, size_t align); /* of offsets that are aligned */

/* How many bytes the overlays of each step can save at most. */
size_t *plan_savings(Arena *a, const Plan *plan, size_t steps);

Layout layout_new(Arena *a, const Plan *plan);
/* Sets the offsets of all items, placed in this order; returns the bytes needed. */
size_t layout_by(Layout *l, const uint32_t *order);
/* For very long programs: in order of time, so that dead items are forgotten and work grows with
 * the number of items alive and not with all. */
size_t layout_by_time(Layout *l, const uint32_t *order);

/* Where `which` may not begin for the sake of what is placed: sets l->gaps, in order of their lower
 * ends; returns how many there are. */
size_t layout_gaps(Layout *l, uint32_t which);
/* Adds `which`, whose offset is set, to what is placed. */
void layout_add(Layout *l, uint32_t which);

/* Looks for a layout of fewer than `total` bytes (exec/place_search.c): all of them if they are
 * few, until one has `bound`. Returns the bytes of the best, whose offsets it sets; `total` for
 * none. */
size_t layout_search(Arena *a, Layout *l, size_t bound, size_t total, size_t *offsets);

#endif
