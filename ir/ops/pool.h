/* What pools have in common: windows over [N, C, spatial...], or all of the spatial dimensions. */
#ifndef QXC_IR_OPS_POOL_H
#define QXC_IR_OPS_POOL_H

#include "ir/ops/bind.h"
#include "ir/ops/op.h"

/* What attributes of a pool S begin with, which has WindowAttrs `w` first. */
#define POOL_ATTRS(S)                                                                              \
    WINDOW_ATTRS(S), ATTR(S, w.ceil_mode, "ceil_mode", ATTR_INT, .def_int = 0, .flag = true)

/* Kernel and rank are stated; every result has the shape of the windows. Of attributes that begin
 * so. */
bool pool_verify(const OpCtx *c);
bool pool_infer(OpCtx *c);
/* The same of one window for everything: [N, C, 1...]. */
bool pool_global_verify(const OpCtx *c);
bool pool_global_infer(OpCtx *c);

/* The windows of a node; `depth` is the first of three dimensions. Attributes begin with
 * WindowAttrs. */
bool pool_spatial(Binder *b, const Node *n, const OpCtx *c, Spatial *s, WindowAxis *depth);
/* The whole plane, of any rank, as one row. */
Spatial pool_global_spatial(const Node *n);

/* A kernel on [n, c, h, w] that reads each window before it writes its result. */
bool pool_call_planes(Binder *b, const Node *n, const Spatial *s, const char *kernel,
                      const void *params, size_t size, ElemType e);
/* A kernel on [n, h, w, c] that adds up results in their place. */
bool pool_call_last(Binder *b, const Node *n, const Spatial *s, const char *kernel,
                    const void *params, size_t size, ElemType e);

/* Three spatial dimensions: planes first, which lie side by side, then what was made of them, each
 * a row, along the first dimension. Counts of elements inside are products of those of both. */
typedef struct PoolStages {
    Spatial planes, depth;
    int between; /* buffer */
} PoolStages;

bool pool_stages(Binder *b, const Node *n, const Spatial *s, const WindowAxis *d, PoolStages *to);

#endif
