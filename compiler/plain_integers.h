/* Operators of floats on plain integers in a result (ir/ops/plain_integer.c). */
#ifndef QXC_COMPILER_PLAIN_INTEGERS_H
#define QXC_COMPILER_PLAIN_INTEGERS_H

#include "compiler/pipeline.h"

/* What ONNX does not have: an error (false) at each node where -emit=qdq or -emit=qop would write
 * it, a warning at the first where the model is left as it is. */
bool plain_integers_fit(const Job *j, Module *m);

#endif
