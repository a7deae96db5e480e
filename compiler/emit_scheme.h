/* -emit=scheme: the rules in force, then the decisions, as a file that -scheme reads. */
#ifndef QXC_COMPILER_EMIT_SCHEME_H
#define QXC_COMPILER_EMIT_SCHEME_H

#include "compiler/pipeline.h"

/* Arena of the module; nothing fails. */
Str scheme_text(const Job *j, Module *m);

#endif
