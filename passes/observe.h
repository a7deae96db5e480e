/* Looking at what values are while the float model runs on the calibration data. Programs need
 * static shapes: shapes_fix gives the module some, shapes_restore takes them away again (new
 * constants keep theirs). Failures are diagnostics of the shapes, the program or the data. */
#ifndef QXC_PASSES_OBSERVE_H
#define QXC_PASSES_OBSERVE_H

#include "passes/pass.h"

typedef struct FixedShapes {
    Type *types; /* by value id, as they were */
    uint32_t n;
} FixedShapes;

/* NULL when not all shapes are known; the module is then as it was. */
FixedShapes *shapes_fix(Module *m, Diags *d);
void shapes_restore(Module *m, FixedShapes *s);

/* One run over all samples, decisions (`~`) ignored. */
bool observe_run(Module *m, PassContext *c, RunnerObserver *fn, void *ctx);

#endif
