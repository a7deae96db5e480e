/* What LayerNormalization and its like (layernorm.c) share with their form on integers
 * (layernorm_integer.c). */
#ifndef QXC_IR_OPS_LAYERNORM_H
#define QXC_IR_OPS_LAYERNORM_H

#include "ir/ops/bind.h"

enum { NORM_X, NORM_SCALE, NORM_BIAS }; /* operands of all of them */

/* x as rows of n elements; element i of row r has scale[r % period * step + i / block]. */
typedef struct NormRows {
    int32_t rows, n, period, step, block;
} NormRows;

/* How many scales that takes. */
int32_t norm_entries(const NormRows *r);

/* QuantRule.integer_refusal: scale and bias have to be constants, the result the only one. */
const char *norm_refusal(const OpCtx *c, const Quant *x);
/* The node on integers; in double where no kernel takes its types or its rows are too long. A scale
 * or bias of one number serves all. `centre`: the mean is taken off. */
bool bind_norm_integers(Binder *b, const Node *n, const OpCtx *c, const NormRows *r, float eps,
                        bool centre);

#endif
