/* Numbers of which a decision leaves nothing: those around 1e-38 ask for scales that are no normal
 * floats, and larger scales round them to 0. Told in warnings, which change nothing. */
#ifndef QXC_PASSES_QUANTIZE_VANISHED_H
#define QXC_PASSES_QUANTIZE_VANISHED_H

#include "passes/pass.h"

/* `w` is a constant weight of `n`, `q` what was decided for it. */
void tell_vanished_weight(const PassContext *c, const Node *n, const Value *w, const Quant *q);
/* `v` was seen between these. */
void tell_vanished_value(const PassContext *c, const Uses *uses, const Value *v, float min,
                         float max, const Quant *q);

#endif
