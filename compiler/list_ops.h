/* qxc list ops: every operator there is, and what becomes of it. */
#ifndef QXC_COMPILER_LIST_OPS_H
#define QXC_COMPILER_LIST_OPS_H

#include "compiler/library.h"
#include "compiler/session.h"

typedef struct OpFacts {
    const char *runs;      /* "kernel", "types" (it says how others are quantized), "function",
                              "parts" (it is taken apart); NULL: it is read, printed and written, and
                              no more */
    const char *integers;  /* "accumulates", "moves data", ...; "" where it has no row */
    const char *qoperator; /* the other form, float or QOperator; "" where it has none */
} OpFacts;

OpFacts op_facts(Library *l, Str domain, Str name);

ExitCode list_ops(Session *s);

#endif
