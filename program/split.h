/* Calls in parts, for threads: each part makes some rows of the result, with params of its own, the
 * same kernel, and the bits that the whole call gives. Runners (exec/run.c) and emitted C
 * (backend/c/parts.c) let the parts run side by side. */
#ifndef QXC_PROGRAM_SPLIT_H
#define QXC_PROGRAM_SPLIT_H

#include "program/program.h"

enum { SPLIT_MOST = 64 };

/* Multiplications, or elements of what does none, that are worth a part. Waking a thread takes
 * about a microsecond, in which vector units do so many; making one takes twenty times as long. */
enum { WORTH_WAKING = 1 << 17, WORTH_MAKING = 1 << 20 };

typedef struct Splitting {
    int parts;  /* 2 to SPLIT_MOST */
    int worth;  /* WORTH_WAKING or WORTH_MAKING */
    bool grown; /* scratch is as large as makes kernels fast, whatever the arena becomes */
} Splitting;

/* Gives calls that have enough to do up to so many parts. Each part has scratch of its own, and the
 * results of such calls lie over no operand whose other rows are read later: the arena grows.
 * Before the memory is planned; what is made is the arena's. Never fails. */
void program_split(Arena *a, Program *p, const Splitting *how);

/* Whether the call has parts that may run side by side. */
bool call_for_threads(const Call *c);
/* Whether some call has. */
bool program_is_split(const Program *p);

#endif
