/* A model that runs over samples: as one program, or where its shapes depend on the data as many of
 * them (exec/evaluate.h). */
#ifndef QXC_EXEC_MODEL_RUN_H
#define QXC_EXEC_MODEL_RUN_H

#include "exec/evaluate.h"

typedef struct ModelRun {
    const Module *module;
    const Program *program; /* NULL where there are many; they leave nothing out */
    Runner *runner;
    Evaluator *evaluator; /* else NULL */
} ModelRun;

/* As program_build and evaluator_new. The program lives in `a`, where `o` names no other arena.
 * NULL after diagnostics. */
ModelRun *model_run_new(Arena *a, Module *m, const ProgramOptions *o, Diags *d);
/* Frees what the last run has computed. */
void model_run_free(ModelRun *r);
/* fn sees each value as soon as it is computed, with the type that it has then. */
void model_run_observe(ModelRun *r, EvaluatorObserver *fn, void *ctx);
/* Memory of the i-th graph input without default. */
void *model_run_input(const ModelRun *r, size_t i);
/* False at the end of the samples, or after a diagnostic. */
bool model_run_load(ModelRun *r, Samples *s);
/* False after a diagnostic. */
bool model_run_sample(ModelRun *r, Diags *d);
/* Elements as runner_value gives them, and their type in the last run. NULL: it did not compute v.
 */
const void *model_run_value(const ModelRun *r, const Value *v, Type *now);

#endif
