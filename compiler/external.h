/* -external-data: weights of an ONNX model in a file beside it, which a model of more than 2 GiB
 * gets by itself. The model names it together with its sha256, in metadata_props: by that the next
 * run with the same -o knows the file for its own (support/file.h). */
#ifndef QXC_COMPILER_EXTERNAL_H
#define QXC_COMPILER_EXTERNAL_H

#include "backend/onnx/onnx.h"
#include "compiler/write.h"

/* Whether the option names a file that the model can refer to; false after a diagnostic. */
bool external_fits(const Session *s);
/* Writes that file, where there is to be one. To be called before onnx_write. False after a
 * diagnostic. */
bool external_write(Writing *w, const OnnxWriteOptions *o);

#endif
