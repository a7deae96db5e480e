/* Outputs that look like the scores of classes: see compiler/measured.h for what counts. */
#ifndef QXC_COMPILER_CLASSES_H
#define QXC_COMPILER_CLASSES_H

#include "ir/ir.h"

/* Whether the output has scores along axis 1, at most `most` in a sample. */
bool are_classes(const Value *v, size_t most);

#endif
