/* What models choose as they run: the elements that NonZero finds, the boxes that NonMaxSuppression
 * keeps. Two models that differ a little may choose others, whose numbers say nothing about each
 * other; so what has as many elements as were chosen is compared where both chose the same.
 *
 * As many elements may be others, too: where ArgMax, TopK or a computed step say which ones a
 * Gather or a Slice picks, or where a Scatter puts its updates. What such a node gives and what
 * follows from it is compared where it picked by the same numbers. Where a body has such a node
 * (Loop, If, Scan), that holds of the results of the node of the main graph that it stands in, and
 * of the numbers of all iterations. exec/picks.h tells what a sample picked by. */
#ifndef QXC_EXEC_CHOICE_H
#define QXC_EXEC_CHOICE_H

#include "exec/exec.h"

/* Integers or bools by which a node of the main graph, or one in its bodies, picks elements. */
typedef struct PickedBy {
    const Value *value;
    const struct PickedBy *next; /* of the same node of the main graph */
} PickedBy;

/* By id of the nodes of the main graph: whether its results follow from a choice, or are one
 * (value_is_counted). */
const bool *choice_follows(Module *m);
/* Integers that a node gives, and no quantization says what they stand for: places, lengths, the
 * numbers of classes. */
bool choice_is_integers(const Value *v);
/* By id of the nodes of the main graph: what each picks by. */
const PickedBy *const *choice_picks(Module *m);
/* By id of the nodes of the main graph: whether the node picks so, follows from one that does, or
 * makes such integers, or an output of integers, of floats. */
const bool *choice_picked(Module *m, const PickedBy *const *picks, const Uses *uses);
/* What reads the results of a node of the main graph follows from it, too. */
void choice_mark_users(const Uses *uses, const Node *n, bool *follows);
/* Whether how many elements it has may follow from a choice. */
bool choice_is_open(const Value *v);

#endif
