/* Numbers of which a decision leaves nothing: those around 1e-38 ask for scales that are no normal
 * floats, larger scales round them to 0, and a scale that is stated may be far too large. Told in
 * warnings, which change nothing. */
#ifndef QXC_PASSES_QUANTIZE_VANISHED_H
#define QXC_PASSES_QUANTIZE_VANISHED_H

#include "passes/pass.h"

/* Of all decisions there are, once they stand: what a later pass leaves float has lost nothing. */
void tell_vanished(const PassContext *c, Module *m);
/* Of a constant weight of `n` that becomes integers of `q` at once. */
void tell_vanished_weight(const PassContext *c, const Node *n, const Value *w, const Quant *q);

#endif
