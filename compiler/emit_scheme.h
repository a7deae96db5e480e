/* -emit=scheme: the rules in force, then the decisions, as a file that -scheme reads. */
#ifndef QXC_COMPILER_EMIT_SCHEME_H
#define QXC_COMPILER_EMIT_SCHEME_H

#include "compiler/pipeline.h"

/* Arena of the module. STR_NONE after a diagnostic: a weight that two readers have in two ways. */
Str scheme_text(const Job *j, Module *m);
/* The name under which the decision about `v` is given back: that of the model's own weight for the
 * integers that a pass made of it. */
Str decision_name(const Job *j, const Value *v);

#endif
