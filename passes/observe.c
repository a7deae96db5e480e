/* See passes/observe.h. */
#include "passes/observe.h"
#include "exec/specialise.h"

static void save_type(Value *v, void *ctx) {
    ((FixedShapes *)ctx)->types[v->id] = v->type;
}

static void restore_type(Value *v, void *ctx) {
    const FixedShapes *s = ctx;
    if (v->id < s->n && v->kind != VALUE_CONST)
        v->type = s->types[v->id];
}

FixedShapes *shapes_fix(Module *m, Diags *d) {
    FixedShapes *s = NEW(m->arena, FixedShapes);
    *s = (FixedShapes){NEW_ARRAY(m->arena, Type, m->n_values), m->n_values};
    module_each_value(m, save_type, s);
    if (module_bind_batch(m, d) && module_check_static(m, d))
        return s;
    shapes_restore(m, s);
    return NULL;
}

void shapes_restore(Module *m, FixedShapes *s) {
    module_each_value(m, restore_type, s);
}

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
