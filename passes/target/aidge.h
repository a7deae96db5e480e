/* What -target=aidge may hold, as aidge_onnx 0.10.1 reads it (tested: test_aidge_itself.py):
 * QuantizeLinear and DequantizeLinear with one scale around operators of ai.onnx that it has a
 * converter for. It has types of 4, 8 and 16 bits, signed or not; zero points are read. */
#ifndef QXC_PASSES_TARGET_AIDGE_H
#define QXC_PASSES_TARGET_AIDGE_H

#include "passes/pass.h"

/* False after errors about values and operators that it cannot hold. */
bool aidge_check(Module *m, PassContext *c);

#endif
