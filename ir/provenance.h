/* What a node or a constant was made from: the `from(...) by ... in ...` that the text and the ONNX
 * file show.
 *
 * Whoever makes a node in place of others, or beside them, says so once it is built. Origins are
 * those of the model as it was read: a source that was itself made stands for what it was made
 * from. Nodes that merely stay, or are reordered, get nothing. Memory is the module's; nothing here
 * fails. */
#ifndef QXC_IR_PROVENANCE_H
#define QXC_IR_PROVENANCE_H

#include "ir/ir.h"

enum { MAX_ORIGINS = 64 }; /* of one node; a chain of thousands that folds into one says no more */

/* Pass `by` made the node from `source`. NULL sources are none. Called again for a further source;
 * `made` never was a node of the model itself. It stands within the same call (Node.within). */
void node_from(Node *made, const Node *source, const char *by);
/* The same where all there is is a value: stands for the node that makes it, else for its name. */
void node_from_value(Node *made, const Value *source, const char *by);
/* `n` stays and does the work of `other`, which goes. */
void node_absorb(Node *n, const Node *other, const char *by);
/* `n` does other work from now on under another name: it stands for what it was. To be called
 * before it changes. */
void node_becomes(Node *n, const char *by);

/* The same for a constant, made from the numbers of another value or from a node. */
void value_from(Value *made, const Value *source, const char *by);
void value_from_node(Value *made, const Node *source, const char *by);

/* Whether `v` is the result of what the node `n` of the model became: itself, or one that it was
 * folded into. False where n is NULL. */
bool value_became_of(const Value *v, const Node *n);

/* The part of the model that a node belongs to, as "layer1.0: BasicBlock" or "layer1"; STR_NONE
 * where nothing is known: what an earlier pass noted, else what the exporter wrote into the node's
 * metadata (PyTorch's pkg.torch.onnx.name_scopes and class_hierarchy, or namespace). */
Str node_group(const Node *n);
/* `copy` is the node `body` of a function, put in the place of the call: the group is the call's
 * name (or the function's, where it has none) within the group of the call. */
void node_inlined(Node *copy, const Node *body, const Node *call, const char *by);

#endif
