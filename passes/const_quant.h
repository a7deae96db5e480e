/* Constants as integers: the element-wise work of true-quant and raise-quant. */
#ifndef QXC_PASSES_CONST_QUANT_H
#define QXC_PASSES_CONST_QUANT_H

#include "ir/ir.h"

/* The float tensor on the grid of `q` (QuantizeLinear's formula, clipped to q's range), packed. */
Tensor *const_quantize(Arena *a, const Tensor *t, const Quant *q);

/* The same of a constant of the module, made when it is written where it `may_wait` (ir/later.h):
 * `t` and `q` stay as they are until then. */
Tensor *const_quantize_later(Module *m, const Tensor *t, const Quant *q, bool may_wait);

/* The real numbers that quantized integers stand for, as a float tensor. */
Tensor *const_dequantize(Arena *a, const Tensor *t, const Quant *q);

/* Whether all of a float tensor's numbers are on the grid of `q`, and not all 0. */
bool const_is_rounded(const Tensor *t, const Quant *q);

/* quant_product where channels are the last axis of a value of this rank. */
Quant *const_sums_quant(Arena *a, const Quant *x, const Quant *w, int rank);

/* A float bias of 1 or `channels` elements as `channels` int32 on that grid. */
Tensor *const_bias(Arena *a, const Tensor *t, const Quant *q, size_t channels);

/* The normal float w for which x * w is `product`, or 0. */
float exact_factor(float x, float product);

#endif
