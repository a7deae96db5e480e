/* -emit=overrides, -emit=encodings: the decisions as JSON for other tools. */
#ifndef QXC_COMPILER_EMIT_SCALES_H
#define QXC_COMPILER_EMIT_SCALES_H

#include "compiler/pipeline.h"

/* onnxruntime's TensorQuantOverrides, or with `aimet` AIMET's encodings 1.0.0. Arena of the module.
 * What the format has no words for (blocks, parts of a range, names that are not UTF-8) is left out
 * with a warning. No text after an error. */
Str scales_text(const Job *j, Module *m, bool aimet);

#endif
