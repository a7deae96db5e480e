/* A node in the form of an older opset of the default domain, meaning the same, bit for bit. */
#ifndef QXC_PASSES_DOWNGRADE_H
#define QXC_PASSES_DOWNGRADE_H

#include "ir/ops/op.h"

/* NULL where the node, which stands at opset `from`, has a form at `to`; else what is in the way.
 * With `names` it takes that form, which may put constants beside it; without, nothing changes.
 * A composite operator (OpDef.composite) may stand below its opset, and is left alone there. */
const char *node_older_form(Node *n, int64_t from, int64_t to, UniqueNames *names);

/* Whether runtimes make of it an operator on integers that has no form at `to`. */
bool node_fuses_as_newer(Node *n, int64_t from, int64_t to);

#endif
