/* How long the open axis of a node's results can be at most, where the data decide that (NonZero):
 * what C has room for, and a run of such a model is held against. A model states it as metadata of
 * the node, `meta <"qxc.max_elements"="100">`. */
#ifndef QXC_IR_BOUND_H
#define QXC_IR_BOUND_H

#include "ir/ir.h"

#define META_BOUND "qxc.max_elements"

/* -1: it states none. False after a diagnostic: it is no number from 1 to 2^31-1. */
bool node_bound(const Node *n, int64_t *most, Diags *d);
/* In place of what it states. */
void node_set_bound(Node *n, int64_t most);
/* The one axis of unknown length; -1 where there is none or several, or the rank is not known. */
int type_open_axis(Type t);

#endif
