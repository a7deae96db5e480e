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

/* The most bytes that a model may have: protobuf's 2 GiB, less what tools may add to it. */
enum { ONNX_WRITE_LARGEST = INT32_MAX - (64 << 20) };
/* The bytes that onnx_write would write, which may be too many; 0 after diagnostics. */
uint64_t onnx_size(const Module *m, const OnnxWriteOptions *options);

/* External data. Initializers of at least ONNX_EXTERNAL_FROM bytes, nested graphs' too, go to a
 * file, in the order of the module, each at a multiple of ONNX_EXTERNAL_ALIGN, as ONNX asks for so
 * that they can be mapped. What is external data already, attributes and strings stay where they
 * are. */
enum { ONNX_EXTERNAL_FROM = 1024, ONNX_EXTERNAL_ALIGN = 4096 };
typedef struct OnnxMoved {
    Str **locations; /* of the tensors: the name of the file */
    size_t n, cap;
    uint64_t bytes; /* of the file */
} OnnxMoved;
bool onnx_can_move(const Module *m); /* is there any such? */
/* Writes them, straight from where they lie, and makes them external data of a file whose name is
 * still to be told. The stream knows whether that failed. */
OnnxMoved onnx_move(Module *m, FILE *out);
/* `location` has to live as long as the module. */
void onnx_name_moved(const OnnxMoved *moved, Str location);

/* False after diagnostics (in m->diags); that a write failed the caller learns from the stream.
 * `options` may be NULL. */
bool onnx_write(const Module *m, FILE *out, const OnnxWriteOptions *options);

#endif
