/* Looking at what values are while the float model runs on the calibration data, within shapes_fix
 * and shapes_restore. Failures are diagnostics of the program or the data. */
#ifndef QXC_PASSES_QUANTIZE_OBSERVE_H
#define QXC_PASSES_QUANTIZE_OBSERVE_H

#include "exec/fixed_shapes.h"
#include "passes/pass.h"

/* A program of what the module was before anything was decided: in float, or what came in types
 * rounded to them. NULL after diagnostics. */
Program *observe_reference(Module *m, PassContext *c, ProgramOptions options);
/* The same in `a`, ready for any number of runs; with constants in the layout of kernels it may
 * take more than the model does. What cannot run is left out (exec/exec.h, `partial`); what is
 * never run shows no value. */
Runner *observe_build(Module *m, PassContext *c, Arena *a);
/* One run over all samples. */
bool observe_run(Runner *r, Module *m, PassContext *c, RunnerObserver *fn, void *ctx);

#endif
