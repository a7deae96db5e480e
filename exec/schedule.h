/* In which order to take steps so that little memory is alive at a time.
 *
 * Steps use items; an item is alive from the first step that uses it to the last. The search is
 * exact while the sets of steps that can have been taken are few, else a beam search; its work is
 * bounded by their number, never by time, so that results are the same everywhere. Never fails. */
#ifndef QXC_EXEC_SCHEDULE_H
#define QXC_EXEC_SCHEDULE_H

#include "support/arena.h"

enum { SCHEDULE_MAX = 128 }; /* steps */

typedef struct StepSet {
    uint64_t word[SCHEDULE_MAX / 64];
} StepSet;

typedef struct ScheduleItem {
    size_t bytes;
    bool before, after; /* alive before the first step, after the last */
    StepSet users;
} ScheduleItem;

/* While a step runs, `bytes` less are needed if it is the last to use `under` and the first to use
 * `over`. */
typedef struct ScheduleSaving {
    int under, over;
    size_t bytes;
} ScheduleSaving;

typedef struct ScheduleStep {
    const int *items;
    size_t n_items;
    const ScheduleSaving *savings; /* of which one counts */
    size_t n_savings;
    size_t own;    /* bytes that it needs besides, while it runs */
    StepSet needs; /* the steps that have to come before it */
} ScheduleStep;

typedef struct Schedule {
    const ScheduleItem *items;
    size_t n_items;
    const ScheduleStep *steps; /* in an order that is possible */
    int n_steps;
} Schedule;

void step_set_add(StepSet *s, int step);
void step_set_remove(StepSet *s, int step);
void step_set_join(StepSet *s, const StepSet *more);

/* The most that is alive at a time when the steps are taken in this order; NULL: as they stand. */
size_t schedule_peak(const Schedule *s, const int *order);

/* What some step needs for itself: no order has a smaller peak. */
size_t schedule_floor(const Schedule *s);

typedef struct Scheduler Scheduler; /* memory of the search, for any number of them */
Scheduler *scheduler_new(Arena *a);
/* Finds an order with a smaller peak than `limit`: false if it found none. */
bool schedule_search(Scheduler *r, const Schedule *s, size_t limit, int *order);

#endif
