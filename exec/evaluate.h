/* Running a model whose shapes depend on its data (NonZero, NonMaxSuppression, loops that end when
 * they like). No one program can: memory and loops of a program are laid out for fixed shapes.
 *
 * The graph is walked in order. Nodes whose shapes follow from what is known so far are gathered,
 * and run as one program; then the lengths, sizes and conditions that it computed are known for
 * those behind. Branches and bodies of loops are walked in the same way, each time that they run.
 * Numbers are those of the same kernels. Everything is made anew for each sample, so a model of
 * fixed shapes had better be a program (module_is_open). */
#ifndef QXC_EXEC_EVALUATE_H
#define QXC_EXEC_EVALUATE_H

#include "exec/samples.h"

/* Whether some shape is known only once the data are: graph inputs are of fixed shape. False where
 * an operator cannot run at all, which program_build reports. */
bool module_is_open(Module *m);

typedef struct Evaluator Evaluator;

/* Needs a module that is resolved and inferred, with inputs of fixed shape. `o`: what programs are
 * built with, and whether all values are kept (keep_all). NULL after diagnostics. */
Evaluator *evaluator_new(Module *m, const ProgramOptions *o, Diags *d);
/* Memory of the i-th graph input without default, to be filled before each run. */
void *evaluator_input(Evaluator *e, size_t i);
/* The next sample straight into them, as samples_load. */
bool evaluator_load(Evaluator *e, Samples *s);
/* False after a diagnostic. What a run computed is gone with the next one. */
bool evaluator_run(Evaluator *e, Diags *d);
/* What the last run computed, with the shape that it had; constants too. NULL: it was not computed,
 * or nobody reads it and it is no output, and `keep_all` was not set. Of a value in a body it is
 * that of the last iteration, gone with the loop. */
const Tensor *evaluator_value(const Evaluator *e, const Value *v);
/* Its elements, one byte each for 4 bits and narrower, a float for float16 and the like, and its
 * type with the shape that it had; NULL where it was not computed. Gone with the next run. */
const void *evaluator_elements(const Evaluator *e, const Value *v, Type *now);
/* Calls fn for each value as it is computed, graph inputs first: with the type that it has then,
 * and its elements as a Runner's observer gets them. Of loops, in each iteration. */
typedef void EvaluatorObserver(void *ctx, const Value *v, Type now, const void *data);
void evaluator_observe(Evaluator *e, EvaluatorObserver *fn, void *ctx);
void evaluator_free(Evaluator *e);

#endif
