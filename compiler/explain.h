/* -explain=VALUE. */
#ifndef QXC_COMPILER_EXPLAIN_H
#define QXC_COMPILER_EXPLAIN_H

#include "compiler/session.h"

/* What was decided of the value that -explain names, or what the compiled module `m` states of it:
 * its type and where that stands, its grid, statistics and the values that share it. Without the
 * option nothing. EXIT_WRONG after a diagnostic where there is no such value. */
ExitCode explain_print(const Job *j, Module *m, FILE *out);

#endif
