/* What the two files of `qxc reduce` share: reduce.c searches, reduce_candidate.c makes what is
 * tried. */
#ifndef QXC_COMPILER_REDUCE_H
#define QXC_COMPILER_REDUCE_H

#include "support/child.h"
#include "compiler/session.h"
#include "passes/shrink/shrink.h"

typedef struct Facts { /* what the processes that make candidates tell; shared memory */
    bool text, valid;
    size_t places, nodes;
} Facts;

typedef struct Reducer {
    Session *s;
    Children children;
    const char *dir;
    const char *best, *candidate; /* paths */
    Facts *facts;
    int failure; /* how CMD fails: child_wait's result */
    size_t nodes, tests;
} Reducer;

typedef struct Making {
    const char *from, *to; /* `to` NULL: standard output */
    const Shrink *shrink;  /* NULL: none */
    Places places;
    bool first; /* reads INPUT itself */
    bool last;  /* writes to -o */
    bool loud;  /* says what goes wrong */
} Making;

/* Starts the process that makes it; child_wait's result is its ExitCode, and `facts` what it found.
 */
pid_t reducer_make(Reducer *r, Making k);

#endif
