/* Writes a module as an ONNX model.
 *
 * The same module always gives the same bytes. Tensor data goes to the file straight from where it
 * lies. What ONNX cannot say (quantized types, our own element types, elided constants) is refused
 * with diagnostics, all of them, before the first byte is written: lowering passes have to come
 * first. Statistics and provenance have to be metadata by now (compiler/metadata.h); aliases have
 * no place in ONNX and are left out. */
#ifndef QXC_BACKEND_ONNX_ONNX_H
#define QXC_BACKEND_ONNX_ONNX_H

#include <stdio.h>

#include "ir/ir.h"

typedef struct OnnxWriteOptions {
    bool inline_external; /* external data at hand becomes part of the model */
    bool allow_newer;     /* opset and IR versions that common runtimes do not load yet */
} OnnxWriteOptions;

enum { ONNX_WRITE_IR = 13, ONNX_WRITE_OPSET = 26 }; /* the newest without allow_newer */

/* False after diagnostics (in m->diags); that a write failed the caller learns from the stream.
 * `options` may be NULL. */
bool onnx_write(const Module *m, FILE *out, const OnnxWriteOptions *options);

#endif
