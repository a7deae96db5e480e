/* A Runner inside: what runner_new.c makes of a program, and run.c goes by. */
#ifndef QXC_EXEC_RUNNER_H
#define QXC_EXEC_RUNNER_H

#include "exec/exec.h"

struct Runner {
    const Program *program;
    uint8_t **memory; /* by buffer; NULL where nothing touches it */
    void **args;      /* of all calls but END, CALL_MAX_ARGS each */
    int *jump;        /* by call: IF, ELSE, LOOP and NEXT, where to go on */
    bool *ran;        /* by call */
    int *completes;   /* by buffer root: the call after which it is complete, -1 before the first */
    uint32_t *order;  /* buffers that hold values, by that call */
    size_t n_order;
    void *params; /* of a call that lengths change */
    RunnerObserver *observer;
    void *observer_ctx;
};

/* The call after which a buffer is complete. */
static inline int runner_completes(const Runner *r, uint32_t buffer) {
    return r->completes[program_root(r->program, (int)buffer)];
}

#endif
