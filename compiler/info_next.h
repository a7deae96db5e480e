/* The command that comes next for a model: the last line of qxc info; and the names of files in
 * such commands. */
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

/* A path that qxc would take for an option or a command gets its folder in front. */
Str next_readable(Arena *a, const char *path);
/* The name of a result of the model, in the folder where the command is run. */
Str next_result(Arena *a, const char *path, const char *suffix);

/* A line for a shell; the arena's. */
Str next_command(Arena *a, const NextFacts *f);

#endif
