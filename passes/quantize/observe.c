/* See passes/quantize/observe.h. */
#include "passes/quantize/observe.h"

Runner *observe_build(Module *m, PassContext *c) {
    ProgramOptions options = {.ignore_quant = !c->on_grids, .observed = true, .partial = true};
    Program *p = program_build(m, &options, c->d);
    return p ? runner_new(m->arena, p) : NULL;
}

bool observe_run(Runner *r, Module *m, PassContext *c, RunnerObserver *fn, void *ctx) {
    Samples *s = pass_samples(m, c);
    if (!s)
        return false;
    runner_observe(r, fn, ctx);
    bool ok = true;
    while (ok && samples_load(s, r))
        ok = runner_run(r, m->diags);
    ok = ok && samples_ok(s);
    samples_close(s);
    return ok;
}
