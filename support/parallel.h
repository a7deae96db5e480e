/* Long loops on several processors at once: for what is done to every element of a large constant.
 * Threads are made for the call, so nothing is kept between calls and nothing has to be shut down.
 * What a part computes must not depend on which thread does it, or when: results are then the
 * same on any number of processors. */
#ifndef QXC_SUPPORT_PARALLEL_H
#define QXC_SUPPORT_PARALLEL_H

#include <stddef.h>

/* Does elements `from` to `to` - 1. Runs beside itself, each time with another number of `worker`:
 * it must not take memory from an arena, report anything, or write what another part touches,
 * scratch of its worker aside. */
typedef void ParallelFn(void *ctx, size_t from, size_t to, int worker);

enum {
    PARALLEL_MOST = 8,
    PARALLEL_PART = 1 << 18 /* elements, where a pass over one takes about a nanosecond or less */
};

/* How many workers parallel_for(n, part) has: as many as processors on which this process may run
 * (taskset narrows them), at most PARALLEL_MOST, and so few that each has some parts to do. At
 * least 1. */
int parallel_workers(size_t n, size_t part);

/* Elements 0 to n - 1 in parts of `part`, the last one shorter, or all at once by one worker;
 * returns when all are done. Without threads, or memory for them, the caller does everything. */
void parallel_for(size_t n, size_t part, ParallelFn *fn, void *ctx);

/* The same of a few tasks that are worth a thread each; fn may get several at once. */
void parallel_tasks(size_t n, ParallelFn *fn, void *ctx);

#endif
