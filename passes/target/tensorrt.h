/* What -target=tensorrt may hold, by NVIDIA's documentation of explicit quantization: int8 with
 * zero point 0, one scale for an activation, one for a tensor or an output channel of weights. */
#ifndef QXC_PASSES_TARGET_TENSORRT_H
#define QXC_PASSES_TARGET_TENSORRT_H

#include "passes/pass.h"

/* Whether every quantized type is one of those; a diagnostic each where not. */
bool tensorrt_check(Module *m, PassContext *c);

/* The text of a calibration cache: "name: " and the bits of the float scale, a line for each
 * quantized value that is no constant. Values that TensorRT's int8 cannot stand for are left out
 * with a warning. Arena of the module. */
Str tensorrt_calib_table(Module *m, Diags *d);

#endif
