/* See passes/quantize/observe.h. */
#include "passes/quantize/observe.h"
#include "passes/quantize/open.h"

typedef struct Aside {
    const PassContext *c;
    Arena *arena;
    struct Decided {
        Value *v;
        Type was;
    } *decided;
    size_t n, cap;
} Aside;

static void put_aside(Value *v, void *ctx) {
    Aside *a = ctx;
    if (!v->type.tilde || !was_decided(a->c, v))
        return;
    struct Decided d = {v, v->type};
    ARENA_PUSH(a->arena, a->decided, a->n, a->cap, d);
    v->type.tilde = false;
    v->type.quant = NULL;
}

Program *observe_reference(Module *m, PassContext *c, ProgramOptions options) {
    Aside aside = {.c = c, .arena = m->arena};
    options.ignore_quant = !c->on_grids;
    if (c->on_grids)
        module_each_value(m, put_aside, &aside);
    Program *p = program_build(m, &options, c->d);
    for (size_t i = 0; i < aside.n; i++)
        aside.decided[i].v->type = aside.decided[i].was;
    return p;
}

Runner *observe_build(Module *m, PassContext *c, Arena *a) {
    ProgramOptions options = {
        .observed = true, .partial = true, .run_parts = runner_parts(), .arena = a};
    Program *p = observe_reference(m, c, options);
    return p ? runner_new(a, p) : NULL;
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
