/* Marks of values, by Value.id, as they are handed on from node to node. Operands and results may
 * be left out. */
#ifndef QXC_PASSES_MARKS_H
#define QXC_PASSES_MARKS_H

#include "ir/ir.h"

/* Whether one of these operands or results is marked. */
static inline bool any_marked(Value *const *values, size_t n, const bool *marks) {
    for (size_t i = 0; i < n; i++)
        if (values[i] && marks[values[i]->id])
            return true;
    return false;
}

static inline void mark_all(Value *const *values, size_t n, bool *marks) {
    for (size_t i = 0; i < n; i++)
        if (values[i])
            marks[values[i]->id] = true;
}

#endif
