/* What models choose as they run: the elements that NonZero finds, the boxes that NonMaxSuppression
 * keeps. Two models that differ a little may choose others, whose numbers say nothing about each
 * other; so what has as many elements as were chosen is compared where both chose the same. */
#ifndef QXC_EXEC_CHOICE_H
#define QXC_EXEC_CHOICE_H

#include "exec/exec.h"

/* By id of the nodes of the main graph: whether its results follow from a choice, or are one
 * (value_is_counted). */
const bool *choice_follows(Module *m);
/* Whether how many elements it has may follow from a choice. */
bool choice_is_open(const Value *v);

#endif
