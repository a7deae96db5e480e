/* -explain=VALUE: where a decision came from, in words. */
#ifndef QXC_PASSES_QUANTIZE_EXPLAIN_H
#define QXC_PASSES_QUANTIZE_EXPLAIN_H

#include "passes/quantize/choice.h"

/* Writes which rules settled the quantization of `v`, the numbers it was computed from and how.
 * `root` is the value whose parameters it shares, else `v`; `choice` what the scheme says of it. */
void explain_value(Buf *b, PassContext *c, const Uses *uses, const Value *v, const Value *root,
                   const Choice *choice);

/* The same of `v`, the bias of `n`, a node that computes on integers. */
void explain_bias(Buf *b, PassContext *c, const Value *v, const Node *n);

#endif
