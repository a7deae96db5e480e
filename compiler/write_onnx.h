/* Writing ONNX that can be read again, whatever a text made its fields of. */
#ifndef QXC_COMPILER_WRITE_ONNX_H
#define QXC_COMPILER_WRITE_ONNX_H

#include "backend/onnx/onnx.h"

/* onnx_write. Where a text gave raw fields (`extra`), the bytes are first read back: fields that do
 * not fit are an error and nothing is written. */
bool write_onnx_checked(Module *m, FILE *out, const OnnxWriteOptions *o, Diags *d);

#endif
