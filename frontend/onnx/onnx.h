/* Reads an ONNX model into the IR.
 *
 * The file is mapped and kept by the module; constants point into it, at any alignment. Everything
 * is checked on the way (sizes, names, definitions before uses, versions); every problem found is
 * a diagnostic. What the IR has no field for goes to `extra`. */
#ifndef QXC_FRONTEND_ONNX_ONNX_H
#define QXC_FRONTEND_ONNX_ONNX_H

#include "ir/ir.h"

enum {
    ONNX_MAX_NAME = 64 * 1024,
    ONNX_MAX_NODES = 1000 * 1000, /* with functions inlined */
};

typedef struct OnnxReadOptions {
    Folders in;           /* `dir` NULL: the folder of the model */
    bool references_only; /* external data are not looked for */
} OnnxReadOptions;

/* The module, or NULL after diagnostics; then the arena is still the caller's to free, and no file
 * stays mapped. `options` may be NULL. */
Module *onnx_read(Arena *a, Diags *d, const char *path, const OnnxReadOptions *options);
/* The same for bytes at hand, which must outlive the module; `name` stands in messages and is the
 * module's path. */
Module *onnx_read_bytes(Arena *a, Diags *d, const char *name, Str bytes,
                        const OnnxReadOptions *options);

#endif
