/* What pools have in common: windows over [N, C, spatial...], or all of the spatial dimensions. */
#ifndef QXC_IR_OPS_POOL_H
#define QXC_IR_OPS_POOL_H

#include "ir/ops/op.h"

/* Kernel and rank are stated; every result has the shape of the windows. */
bool pool_verify(const OpCtx *c, const WindowAttrs *a);
bool pool_infer(OpCtx *c, const WindowAttrs *a);
/* The same of one window for everything: [N, C, 1...]. */
bool pool_global_verify(const OpCtx *c);
bool pool_global_infer(OpCtx *c);

#endif
