/* How values depend on the samples, followed through the graph. For exec/batch.c. */
#ifndef QXC_EXEC_BATCH_TRACE_H
#define QXC_EXEC_BATCH_TRACE_H

#include "exec/batch.h"
#include "exec/batch_probe.h"

/* The module at the two sizes says what it is, into `b`. It has the size of `many`. */
void batch_trace(Module *m, const Probe *few, const Probe *many, Diags *quiet, Batch *b);

#endif
