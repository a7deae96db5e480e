/* What operators share that give the same bytes other dimensions (reshape.c, squeeze.c). */
#ifndef QXC_IR_OPS_RESHAPE_H
#define QXC_IR_OPS_RESHAPE_H

#include "ir/ops/told.h"

/* An axis survives when the result has one of its length with as many elements before it. */
int reshape_move_axis(const OpCtx *c, int axis);
bool reshape_bind(Binder *b, const Node *n, const OpCtx *c);

/* Of a QuantRule. */
#define RESHAPE_MOVER .kind = QUANT_MOVE, .data = 1, .move.axis = reshape_move_axis

#endif
