/* Programs without what cannot run (ProgramOptions.partial). */
#ifndef QXC_EXEC_PARTIAL_H
#define QXC_EXEC_PARTIAL_H

#include "exec/exec.h"
#include "program/binder.h"

/* Binds the nodes of the main graph that can run. What Program.left_out names is
 * left out, and so is what turns out not to run, with all that depends on it: what those nodes had
 * begun to bind is still there, so another binder has to begin again where `rejected` is not empty.
 * False after a diagnostic: a fault of the model. */
bool bind_partly(Binder *b, Graph *g);
/* The node itself, or the one in whose bodies it is. */
const Node *in_main_graph(const Node *n);
/* Whether a node that could be quantized was bound. */
bool partial_is_useful(const Program *p);
/* Sets Rejection.values. */
void partial_count(Program *p);
/* The reasons, without what has them (`why` is NULL), for when the program is gone. NULL stays. */
const LeftOut *left_out_reasons(Arena *a, const LeftOut *of);

#endif
