/* Integers that calls index with, looked at before they run (Within in program/program.h). */
#ifndef QXC_EXEC_WITHIN_H
#define QXC_EXEC_WITHIN_H

#include "program/program.h"

/* A number that is out of range. */
typedef struct Outside {
    const Within *of;
    int64_t number;
    int32_t length;
} Outside;

/* Whether all are in range, in the memory that `args` point to; `*out` is the first that is not. */
bool call_within(const Program *p, const Call *c, void *const *args, Outside *out);
/* Reports it at the node; returns false. */
bool outside_error(const Call *c, const Outside *o, Diags *d);

#endif
