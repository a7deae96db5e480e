/* What passes ask of MultiThreshold. */
#ifndef QXC_IR_OPS_MULTITHRESHOLD_H
#define QXC_IR_OPS_MULTITHRESHOLD_H

#include "ir/ops/op.h"

/* The axis of the channels of a resolved node whose operand has a rank of 2 or more. */
int multithreshold_axis(const Node *n);

#endif
