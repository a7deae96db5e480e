/* -emit=calib-table: the calibration cache that TensorRT's implicit quantization reads. */
#ifndef QXC_COMPILER_CALIB_TABLE_H
#define QXC_COMPILER_CALIB_TABLE_H

#include "compiler/pipeline.h"

/* "name: " and the bits of the float scale, a line for each quantized value that is no constant.
 * Values that the target's types cannot stand for are left out with a warning. Arena of the module.
 */
Str calib_table(const Job *j, Module *m);

#endif
