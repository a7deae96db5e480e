/* The rules a quantized type keeps whatever operator it stands at: parameters that make sense, and
 * that fit the shape; constants within their range. What operators ask of their operands' types is
 * not here. Each function reports all it finds at `at` and returns whether there was nothing. */
#ifndef QXC_IR_VERIFY_QUANT_H
#define QXC_IR_VERIFY_QUANT_H

#include "ir/ir.h"

/* Of blocks along an axis. */
bool verify_block_size(int64_t size, Loc at, Diags *d);
/* The parameters by themselves: scales finite, positive and normal; zero points in the range, the
 * range in the storage type; axes distinct; as many zero points as scales. */
bool verify_quant(const Quant *q, Loc at, Diags *d);
/* The parameters against the shape: axes within the rank, as many scales as the axis is long or as
 * there are blocks, no dynamic dimension on a quantized axis. Types within seq<> etc. too. */
bool verify_quant_type(Type t, Loc at, Diags *d);
/* The elements of a constant of this type against the range. Constants without data pass, and those
 * that passed before. */
bool verify_quant_const(Type t, Tensor *data, Loc at, Diags *d);
/* All of the above for every value of the module. */
bool verify_quants(Module *m, Diags *d);

#endif
