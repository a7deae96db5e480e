/* See exec/model_run.h. */
#include "exec/model_run.h"

ModelRun *model_run_new(Arena *a, Module *m, const ProgramOptions *o, Diags *d) {
    ModelRun *r = NEW(a, ModelRun);
    ProgramOptions options = o ? *o : (ProgramOptions){0};
    r->module = m;
    if (module_is_open(m)) {
        r->evaluator = evaluator_new(m, &options, d);
        return r->evaluator ? r : NULL;
    }
    options.arena = options.arena ? options.arena : a;
    r->program = program_build(m, &options, d);
    r->runner = r->program ? runner_new(a, r->program) : NULL;
    return r->runner ? r : NULL;
}

void model_run_free(ModelRun *r) {
    if (r && r->evaluator)
        evaluator_free(r->evaluator);
}

typedef struct Observed {
    EvaluatorObserver *fn;
    void *ctx;
} Observed;

static void pass_on(void *ctx, const Value *v, const void *data) {
    const Observed *o = ctx;
    o->fn(o->ctx, v, v->type, data);
}

void model_run_observe(ModelRun *r, EvaluatorObserver *fn, void *ctx) {
    if (r->evaluator) {
        evaluator_observe(r->evaluator, fn, ctx);
        return;
    }
    Observed *o = NEW(r->module->arena, Observed);
    *o = (Observed){fn, ctx};
    runner_observe(r->runner, pass_on, o);
}

void *model_run_input(const ModelRun *r, size_t i) {
    return r->evaluator ? evaluator_input(r->evaluator, i) : runner_input(r->runner, i);
}

bool model_run_load(ModelRun *r, Samples *s) {
    return r->evaluator ? evaluator_load(r->evaluator, s) : samples_load(s, r->runner);
}

bool model_run_sample(ModelRun *r, Diags *d) {
    return r->evaluator ? evaluator_run(r->evaluator, d) : runner_run(r->runner, d);
}

const void *model_run_value(const ModelRun *r, const Value *v, Type *now) {
    *now = v->type;
    if (r->runner)
        return runner_computed(r->runner, v) ? runner_value(r->runner, v) : NULL;
    return evaluator_elements(r->evaluator, v, now);
}
