/* -v: what a pass changed, found by what the module was before. */
#ifndef QXC_COMPILER_SNAPSHOT_H
#define QXC_COMPILER_SNAPSHOT_H

#include "ir/ir.h"

typedef struct Snapshot Snapshot;

Snapshot *snapshot_take(Module *m);
/* "12 changes: 2 nodes gone, 10 values typed", or "nothing changed"; the module's arena. */
const char *snapshot_changes(Snapshot *before, Module *m);
void snapshot_free(Snapshot *s); /* NULL is fine */

#endif
