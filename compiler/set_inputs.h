/* -set=INPUT=1,2,3: graph inputs that get their value when the model is compiled. */
#ifndef QXC_COMPILER_SET_INPUTS_H
#define QXC_COMPILER_SET_INPUTS_H

#include "compiler/session.h"

/* Those of the command line become constants of the module, which is checked again. Where names
 * need not be `known`, others are passed over. False with *code after diagnostics. */
bool set_inputs(Session *s, Module *m, bool known, ExitCode *code);

#endif
