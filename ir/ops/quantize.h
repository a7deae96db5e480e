/* What QuantizeLinear and DequantizeLinear (quantize.c) share with how they run
 * (quantize_bind.c). */
#ifndef QXC_IR_OPS_QUANTIZE_H
#define QXC_IR_OPS_QUANTIZE_H

#include "ir/ops/bind.h"

typedef struct LinearAttrs {
    int64_t axis, block_size, output_dtype, saturate, precision;
} LinearAttrs;

enum { LINEAR_X, LINEAR_SCALE, LINEAR_ZP }; /* operands of ONNX's form */

/* The form with one operand, whose parameters a type states. */
bool linear_own_form(const Node *n);

bool quantize_bind(Binder *b, const Node *n, const OpCtx *c);
bool dequantize_bind(Binder *b, const Node *n, const OpCtx *c);

#endif
