#include "support/parallel.h"
#include "support/platform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Whoever comes first takes the next part. The caller works too and waits for parts that others
 * have taken, not for threads that have yet to start: on a busy machine that may be long after all
 * is done. So the loop belongs to all of them, and the last one frees it. */
typedef struct Loop {
    size_t n, part;
    ParallelFn *fn;
    void *ctx;
    atomic_size_t next; /* the first element that nobody has taken */
    atomic_int workers; /* so many have started */
    atomic_int owners;
    pthread_mutex_t lock;
    pthread_cond_t all_done;
    size_t done; /* elements, under the lock */
} Loop;

/* So many threads as are worth it and have a processor each. */
static int workers_for(size_t worth) {
    if (worth < 2)
        return 1;
    int have = processors_usable();
    size_t most = have < 1 ? 1 : have < PARALLEL_MOST ? (size_t)have : PARALLEL_MOST;
    return (int)(worth < most ? worth : most);
}

int parallel_workers(size_t n, size_t part) {
    enum { FEW = 2 }; /* parts that are worth a thread */
    return workers_for(n / part / FEW);
}

static void work(Loop *l) {
    int worker = atomic_fetch_add(&l->workers, 1);
    size_t done = 0;
    for (size_t from; (from = atomic_fetch_add(&l->next, l->part)) < l->n;) {
        size_t to = l->n - from < l->part ? l->n : from + l->part;
        l->fn(l->ctx, from, to, worker);
        done += to - from;
    }
    if (!done)
        return;
    pthread_mutex_lock(&l->lock);
    l->done += done;
    if (l->done == l->n)
        pthread_cond_signal(&l->all_done);
    pthread_mutex_unlock(&l->lock);
}

static void leave(Loop *l) {
    if (atomic_fetch_sub(&l->owners, 1) > 1)
        return;
    pthread_cond_destroy(&l->all_done);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void *helper(void *arg) {
    work(arg);
    leave(arg);
    return NULL;
}

static void start_helper(Loop *l) {
    pthread_t thread;
    atomic_fetch_add(&l->owners, 1);
    if (pthread_create(&thread, NULL, helper, l) == 0)
        pthread_detach(thread);
    else
        leave(l);
}

static void wait_for_all(Loop *l) {
    pthread_mutex_lock(&l->lock);
    while (l->done < l->n)
        pthread_cond_wait(&l->all_done, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

static void share(size_t n, size_t part, int workers, ParallelFn *fn, void *ctx) {
    Loop *l = workers > 1 ? malloc(sizeof *l) : NULL;
    if (!l) {
        if (n)
            fn(ctx, 0, n, 0);
        return;
    }
    *l = (Loop){.n = n, .part = part, .fn = fn, .ctx = ctx, .owners = 1};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->all_done, NULL);
    for (int i = 1; i < workers; i++)
        start_helper(l);
    work(l);
    wait_for_all(l);
    leave(l);
}

void parallel_for(size_t n, size_t part, ParallelFn *fn, void *ctx) {
    share(n, part, parallel_workers(n, part), fn, ctx);
}

void parallel_tasks(size_t n, ParallelFn *fn, void *ctx) {
    share(n, 1, workers_for(n), fn, ctx);
}
