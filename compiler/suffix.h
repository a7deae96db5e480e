/* Whether the suffix of -o is that of the kind of file that goes there. */
#ifndef QXC_COMPILER_SUFFIX_H
#define QXC_COMPILER_SUFFIX_H

#include "compiler/pipeline.h"

/* A suffix that belongs to another kind is an error, with -emit and without, as is one that no
 * -emit writes. False after an error. */
bool suffix_fits(const Options *o, EmitKind emit, Diags *d);
/* Of a command that writes one kind of file: any other known suffix is an error. */
bool suffix_is(const Options *o, const char *command, const char *suffix, Diags *d);

#endif
