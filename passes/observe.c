/* See passes/observe.h. */
#include "passes/observe.h"

bool observe_run(Module *m, PassContext *c, RunnerObserver *fn, void *ctx) {
    Program *p = program_build(m, &(ProgramOptions){.ignore_quant = true}, c->d);
    Samples *s = p ? pass_samples(m, c) : NULL;
    if (!s)
        return false;
    Runner *r = runner_new(m->arena, p);
    runner_observe(r, fn, ctx);
    while (samples_load(s, r))
        runner_run(r);
    bool ok = samples_ok(s);
    samples_close(s);
    return ok;
}
