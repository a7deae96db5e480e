/* A matrix [N,C] as N lines of one element, [N,C,1]: a Conv has room for those. What has more
 * dimensions is taken as it is. */
#ifndef QXC_PASSES_LINE_H
#define QXC_PASSES_LINE_H

#include "passes/quant_build.h"

enum { LINE_RANK = 3 };

/* x, or its lines, which a new node before `at` makes. */
Value *line_of(QuantBuild *b, Node *at, Value *x);
/* `n`, unlinked and without a result, makes y in the place of the node that did, before `at`: y
 * itself or the lines that a new node makes y of. */
void line_store(QuantBuild *b, Node *at, Node *n, Value *y);

#endif
