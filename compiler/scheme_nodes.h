/* What nodes of a model state about their own quantization, as rules of a scheme: metadata of the
 * keys "quantization.weights", "quantization.activations", ... (docs/trained.md). */
#ifndef QXC_COMPILER_SCHEME_NODES_H
#define QXC_COMPILER_SCHEME_NODES_H

#include "ir/ir.h"

/* Appends a rule for each. Attributes of these names, which no operator has, become metadata.
 * Memory is the module's; false after diagnostics, of all nodes. */
bool scheme_of_nodes(Scheme *s, Module *m, Diags *d);
/* Of a model that is written as it came: what no rule could be made of is told, as warnings. */
void scheme_check_nodes(Module *m, Diags *d);
/* Makes the node state that it stays float. One without a name is called as its first result, by
 * which rules know it. */
void scheme_keep_node(Node *n);

#endif
