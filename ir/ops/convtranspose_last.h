/* Integer ConvTranspose with channels last: the fast form of what convtranspose.c binds. */
#ifndef QXC_IR_OPS_CONVTRANSPOSE_LAST_H
#define QXC_IR_OPS_CONVTRANSPOSE_LAST_H

#include "ir/ops/packed.h"

/* Whether this form serves: constant weights [ic, oc, kh, kw] in the buffer `weights` (8 bits,
 * signed, zero point 0), constant biases beside them (packed.h), no groups and dilations, and not
 * too many zeros among the phases. Else the general kernel does. */
bool convtranspose_last_fits(Binder *b, const Spatial *s, const Mac *m, int32_t group, int weights,
                             const Beside *o);
bool convtranspose_last_bind(Binder *b, const Node *n, const Spatial *s, const Mac *m, int weights,
                             Beside o);

#endif
