/* qxc list ops: every operator there is, and what becomes of it. */
#ifndef QXC_COMPILER_LIST_OPS_H
#define QXC_COMPILER_LIST_OPS_H

#include "compiler/session.h"

ExitCode list_ops(Session *s);

#endif
