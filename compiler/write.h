/* What writing the outputs of a compilation shares: write.c opens files and knows the formats that
 * are small, write_c.c those of C. False after a diagnostic; files are staged, so that none is left
 * half written. */
#ifndef QXC_COMPILER_WRITE_H
#define QXC_COMPILER_WRITE_H

#include "compiler/session.h"

typedef struct Writing {
    Session *s;
    Job *j;
    Module *m;
    OutFiles *out;
    FILE *file; /* the main output: a staged file or stdout */
} Writing;

/* -emit=c: the source, its header and, where asked for, the weights beside it. */
bool write_c(Writing *w);
/* Whether what -emit names is no text. */
bool emits_binary(const Job *j);

#endif
