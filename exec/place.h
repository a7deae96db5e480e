/* One layout of items (exec/plan.h), built by placing one after the other, each in the gap that
 * fits best among those placed before. Belongs to the arena it was made in; cannot fail. */
#ifndef QXC_EXEC_PLACE_H
#define QXC_EXEC_PLACE_H

#include "exec/plan.h"

typedef struct Layout {
    const Plan *plan;
    uint32_t *placed; /* by offset */
    size_t n_placed, total;
    struct Overlays *overlays; /* by item */
    struct Gap *gaps;          /* of the item that is being placed */
} Layout;

size_t plan_aligned(const Plan *plan, size_t bytes);
int64_t plan_lead(const Plan *plan, const PlanOverlay *o); /* as offsets have it, aligned */

Layout layout_new(Arena *a, const Plan *plan);
/* Sets the offsets of all items, placed in this order; returns the bytes needed. */
size_t layout_by(Layout *l, const uint32_t *order);
/* For very long programs: in order of time, so that dead items are forgotten and work grows with
 * the number of items alive and not with all. */
size_t layout_by_time(Layout *l, const uint32_t *order);

#endif
