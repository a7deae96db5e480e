/* See passes/quantize/observe.h. */
#include "passes/quantize/observe.h"

bool observe_run(Module *m, PassContext *c, RunnerObserver *fn, void *ctx) {
    ProgramOptions options = {.ignore_quant = true, .observed = true, .partial = true};
    Program *p = program_build(m, &options, c->d);
    Samples *s = p ? pass_samples(m, c) : NULL;
    if (!s)
        return false;
    Runner *r = runner_new(m->arena, p);
    runner_observe(r, fn, ctx);
    bool ok = true;
    while (ok && samples_load(s, r))
        ok = runner_run(r, m->diags);
    ok = ok && samples_ok(s);
    samples_close(s);
    return ok;
}
