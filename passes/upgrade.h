/* Operators rewritten for a newer opset, one node at a time: what the pass `upgrade` does to a
 * whole module, and `inline-functions` to bodies that are at another opset than the model.
 *
 * What cannot be converted is reported, each operator type once, and leaves `ok` false. All memory
 * is the module's. */
#ifndef QXC_PASSES_UPGRADE_H
#define QXC_PASSES_UPGRADE_H

#include "passes/pass.h"

enum { UPGRADE_OLDEST = 7 }; /* what rows of operators convert from; older: old_forms.h */

typedef struct Upgrade {
    PassContext *c;
    int64_t to; /* version of the default domain */
    UniqueNames *names;
    Map *refused; /* operator types reported already */
    bool ok;
} Upgrade;

Upgrade upgrade_begin(Module *m, PassContext *c, int64_t to);
/* From the opset that the node's body imports to `to`, where that is newer. The node is resolved;
 * afterwards it is to be resolved again, at the new opset. May put nodes and constants beside it.
 */
void upgrade_node(Upgrade *u, Node *n);
/* The other way; false after an error that tells the lowest opset that works. */
bool downgrade_node(Upgrade *u, Node *n);
/* The lowest opset, `least` or above, at which every node has a form; the module's own where it has
 * functions. */
int64_t module_lowest_opset(Module *m, int64_t least);
/* Says why a node at opset `from` cannot be converted; false. */
bool upgrade_refuse(Upgrade *u, const Node *n, int64_t from, const char *why);
/* The module states the new opset, and an IR version that knows it. */
void upgrade_end(Upgrade *u, Module *m);

#endif
