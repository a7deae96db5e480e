/* What nodes are quantized to, in Aidge's words: metadata "quantization.ptq.precision" says the one
 * signed, symmetric type of results and weights ("int8"), "quantization.ptq.notquantized" that
 * there is none ("1"). compiler/scheme_nodes.c reads both as rules. */
#ifndef QXC_PASSES_LOWER_STATE_PRECISION_H
#define QXC_PASSES_LOWER_STATE_PRECISION_H

#include "ir/ir.h"

/* To be called while values are `~ q`. Nodes of another type get neither, with a warning; so do
 * those that state another precision. */
void state_precision(Module *m, Diags *d);

#endif
