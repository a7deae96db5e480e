/* Looking at what values are while the float model runs on the calibration data, within shapes_fix
 * and shapes_restore. Failures are diagnostics of the program or the data. */
#ifndef QXC_PASSES_QUANTIZE_OBSERVE_H
#define QXC_PASSES_QUANTIZE_OBSERVE_H

#include "exec/fixed_shapes.h"
#include "passes/pass.h"

/* One run over all samples, decisions (`~`) ignored. What cannot run is left out (exec/exec.h,
 * `partial`); what is never run shows no value. */
bool observe_run(Module *m, PassContext *c, RunnerObserver *fn, void *ctx);

#endif
