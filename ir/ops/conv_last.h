/* Integer convolution with channels last: the fast form of what conv.c binds. */
#ifndef QXC_IR_OPS_CONV_LAST_H
#define QXC_IR_OPS_CONV_LAST_H

#include "ir/ops/packed.h"

/* The buffer of weights [oc, ic / group, kh, kw] (signed, zero point 0, of 8 bits or packed_small),
 * bytes for unfolded positions, and what stands beside the
 * weights. */
typedef struct ConvOperands {
    int weights;
    int32_t group;
    int32_t unfold_bytes;
    Beside beside;
} ConvOperands;

/* Whether this form serves; else the general kernels do. */
bool conv_last_fits(Binder *b, const Spatial *s, const Mac *m, const ConvOperands *o);
bool conv_last_bind(Binder *b, const Node *n, const Spatial *s, const Mac *m,
                    const ConvOperands *o);

#endif
