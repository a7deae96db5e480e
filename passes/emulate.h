/* Quantizations that ONNX's QuantizeLinear or DequantizeLinear cannot state, spelled with operators
 * that every opset from 11 on has:
 *
 *   q = Cast<storage>(Clip(Round(x / scale) + zp, lo, hi))    (Min and Max before opset 12)
 *   x = Cast<real>(Cast<int32>(q) - zp) * scale
 *
 * These are 32-bit activations, double as the real type (expr=double), zero points outside the
 * storage type (-wide-zp), and 16 bits or blocks where -target-opset is below 21. The results are
 * those of the kernels, bit for bit, NaN aside: what Cast makes of NaN is nobody's promise. Memory
 * is the module's. */
#ifndef QXC_PASSES_EMULATE_H
#define QXC_PASSES_EMULATE_H

#include "passes/quant_build.h"

enum { EMULATE_OPSET = 11 };

bool emulates_quantize(const QuantBuild *b, const Quant *q);
bool emulates_dequantize(const QuantBuild *b, const Quant *q);
/* `n`, a conversion of one operand that stands in the graph, becomes the last of the operators; the
 * others stand before it. `t` has the shape of its operand. */
void emulate_quantize(QuantBuild *b, Node *n, const Quant *q, Type t, Str base);
void emulate_dequantize(QuantBuild *b, Node *n, const Quant *q, Type t, Str base);

/* Whether this is the last operator of a Q, or of a DQ of constants, that was spelled so. */
bool is_emulated(const Node *n);

/* One entry of the parameters for each index of the quantized axes, 1 along the others: the shape
 * that broadcasts over a tensor of type `t`. Gives the rank and the number of entries. */
int entries_shape(const Quant *q, Type t, int64_t *dims, size_t *count);

#endif
