/* Where a .qir text has the operands, results and attributes of a node, whose own place is that of
 * its operator's name. Looked for only when a message is about one. */
#ifndef QXC_FRONTEND_QIR_QIR_PLACE_H
#define QXC_FRONTEND_QIR_QIR_PLACE_H

#include "support/diag.h"

/* See DiagFindPart. A value is found by its name, which the part must have, so that a node that a
 * pass changed shows nothing wrong. Time: that of reading the node's text. */
bool qir_find_part(Arena *scratch, Str text, const DiagPart *part, Loc *at);

#endif
