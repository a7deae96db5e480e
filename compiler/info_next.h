/* The command that comes next for a model: the last line of qxc info. */
#ifndef QXC_COMPILER_INFO_NEXT_H
#define QXC_COMPILER_INFO_NEXT_H

#include "support/buf.h"

/* What a model is, as far as the next command depends on it. */
typedef struct NextFacts {
    const char *path; /* as the user gave it; "-" for standard input */
    bool quantized;   /* some of it, in whatever words */
    bool decided;     /* by decisions (float ~) */
    bool statistics;  /* it holds what calibration saw */
    bool completable; /* data would decide something that is float by now */
} NextFacts;

/* A line for a shell; the arena's. */
Str next_command(Arena *a, const NextFacts *f);

#endif
