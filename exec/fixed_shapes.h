/* A module whose shapes are fixed for a while, so that a program can be built of it.
 *
 * Symbolic dimensions take their numbers from data, a batch becomes 1 (samples_bind), and what then
 * is constant (shapes that the model computes, and what follows from them) is computed. Later
 * the module is given back its own types and nodes, with what was learnt of its values and with
 * whatever else was changed in between. */
#ifndef QXC_EXEC_FIXED_SHAPES_H
#define QXC_EXEC_FIXED_SHAPES_H

#include "exec/samples.h"

typedef struct FixedShapes FixedShapes;

/* NULL after diagnostics, when a shape is not known; the module is then as it was. The data may be
 * none. */
FixedShapes *shapes_fix(Module *m, const DataPaths *data, Diags *d);
/* Values that were computed once and for all get a stat of their elements. */
void shapes_restore(Module *m, FixedShapes *s);
/* The same, and those keep the stat that they had. */
void shapes_undo(Module *m, FixedShapes *s);
/* The start of shapes_fix alone: nothing is fixed yet. */
FixedShapes *shapes_save(Module *m);

#endif
