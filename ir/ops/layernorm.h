/* What normalizations of rows (layernorm.c, groupnorm.c, skiplayernorm.c) share, and their form on
 * integers (layernorm_integer.c). */
#ifndef QXC_IR_OPS_LAYERNORM_H
#define QXC_IR_OPS_LAYERNORM_H

#include "ir/ops/bind.h"

typedef struct NormAttrs {
    int64_t axis, stash_type, num_groups;
    float epsilon;
} NormAttrs;

enum { NORM_X, NORM_SCALE, NORM_BIAS }; /* operands of all of them */

/* x as rows of n elements; element i of row r has scale[r % period * step + i / block]. */
typedef struct NormRows {
    int32_t rows, n, period, step, block;
} NormRows;

/* A law: the operand, where it is given, is a vector of so many numbers. */
bool norm_check_count(const OpCtx *c, size_t i, int64_t want);

/* The rows on floats. args: the buffers of x, scale, bias (-1: none) and y. stats: those where mean
 * and 1 / deviation are asked for, -1: they are not. `centre`: the mean is taken off. */
bool norm_bind_rows(Binder *b, const Node *n, NormRows r, float eps, bool centre, const int args[4],
                    const int stats[2]);
/* The node, on integers or floats, with the rows `r`; it has three operands and one result. */
bool norm_bind_channels(Binder *b, const Node *n, const OpCtx *c, const NormRows *r, float eps);

/* How many scales that takes. */
int32_t norm_entries(const NormRows *r);

/* QuantRule.integer_refusal: scale and bias have to be constants, the result the only one. */
const char *norm_refusal(const OpCtx *c, const Quant *x);
/* The node on integers; in double where no kernel takes its types or its rows are too long. A scale
 * or bias of one number serves all. `centre`: the mean is taken off. */
bool bind_norm_integers(Binder *b, const Node *n, const OpCtx *c, const NormRows *r, float eps,
                        bool centre);

/* The result's largest numbers are several deviations: 8 bits are few, and no runtime has it. */
#define NORM_QUANT(of_scale)                                                                       \
    .quant = {.kind = QUANT_COMPUTE,                                                               \
              .data = 1u << X,                                                                     \
              .prefers_float = SPANS_TOO_MUCH,                                                     \
              .scaled.proportional = (of_scale),                                                   \
              .integer_refusal = norm_refusal}

#endif
