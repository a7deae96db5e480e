/* The shape that a Reshape states, for other sizes of what it moves: pure arithmetic. */
#ifndef QXC_PASSES_PREPARE_GROW_SHAPE_H
#define QXC_PASSES_PREPARE_GROW_SHAPE_H

#include "ir/ops/op.h"

/* Dimensions that are to become symbols: their sizes as the model has them (-1: none) and others on
 * trial. */
typedef struct Sizes {
    const int64_t *old, *trial;
    size_t n;
} Sizes;

/* A Reshape from x0 to y0 by `shape`, y0's rank long, whose operand is x1 on trial: rewrites
 * `shape` with 0 and -1 so that it holds for every size. GROWS_NOT where nothing can be said of
 * these types or they are the same; GROWS_UNSURE where neither 0 nor -1 does for sure, and `shape`
 * is lost. */
typedef enum ShapeGrowth { GROWS_NOT, GROWS, GROWS_UNSURE } ShapeGrowth;
ShapeGrowth grow_shape(const Sizes *t, Type x0, Type x1, Type y0, bool allowzero, int64_t *shape);

#endif
