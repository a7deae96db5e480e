/* Opsets 1 to 6, whose operators had other forms: broadcasting was asked for by attributes, what
 * trains said so itself, and each node listed the operands that it might write over.
 *
 * A node in such a form has no row (op_resolve), so no law and no kernel reads it. */
#ifndef QXC_PASSES_OLD_FORMS_H
#define QXC_PASSES_OLD_FORMS_H

#include "passes/upgrade.h"

enum { OLD_FORMS_END = 7 }; /* the first opset without them */

/* Brings all nodes of the model, which states an older opset, into the form of opset 7, and the
 * model with them. Types behind them are inferred. False after diagnostics. */
bool old_forms_renew(Module *m, PassContext *c);

#endif
