/* -cut-outputs=NAME,... and -cut-inputs=NAME,...: a part of a model. */
#ifndef QXC_COMPILER_CUT_H
#define QXC_COMPILER_CUT_H

#include "compiler/session.h"

/* Leaves the part of the module that the command line asks for. `flags` are those of module_check,
 * which looks at the part again. False with *code after diagnostics. */
bool cut_module(Session *s, Module *m, unsigned flags, ExitCode *code);

#endif
