/* Quantizations that another tool decided, as rules of a scheme: onnxruntime's TensorQuantOverrides
 * as JSON, and AIMET's encodings (0.6.1 and 1.0.0). What a format says and rules cannot is a
 * warning. */
#ifndef QXC_FRONTEND_SCALES_SCALES_READ_H
#define QXC_FRONTEND_SCALES_SCALES_READ_H

#include "ir/scheme.h"

/* Whether the file begins like JSON; false too where it cannot be read. */
bool scales_are_json(const char *path);
/* Appends a `value` rule for each tensor. Memory is the arena's; false after diagnostics. */
bool scales_read(Arena *a, Diags *d, const char *path, Scheme *out);

#endif
