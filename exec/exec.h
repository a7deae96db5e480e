/* Building and running programs (program/program.h).
 *
 * program_build turns a module into a program, program_plan lays out its memory, a Runner executes
 * it in this process. What a Runner computes is, bit for bit for integers, what emitted C computes:
 * both follow the same list of calls. Programs and runners live in the arena they are given.
 * Building fails with diagnostics (all unsupported operators at once); running only where a loop
 * does not end or an index is out of range. */
#ifndef QXC_EXEC_EXEC_H
#define QXC_EXEC_EXEC_H

#include "program/program.h"

/* Needs a module that is resolved and inferred, with static shapes. `o` may be NULL. NULL after
 * diagnostics: one line for each operator type that cannot run, with its reason; of a partial
 * program, where no node that could be quantized is left. */
Program *program_build(Module *m, const ProgramOptions *o, Diags *d);

/* Why a partial program does not compute the value; NULL where it does. */
const Rejection *program_left_out(const Program *p, const Value *v);

typedef struct Runner Runner;

/* How many parts calls fall into for a Runner that uses all processors (ProgramOptions.run_parts):
 * two for each processor on which this process may run, 0 where there is one. */
int runner_parts(void);
Runner *runner_new(Arena *a, const Program *p);
/* Memory of the i-th graph input, to be filled before each run. Bytes as in ONNX raw_data. */
void *runner_input(Runner *r, size_t i);
/* Bytes as in ONNX raw_data; NULL where the program leaves it out. */
const void *runner_output(const Runner *r, size_t i);
/* False after a diagnostic: a loop did not end, or an index is out of range. */
bool runner_run(Runner *r, Diags *d);
/* The elements of a value, one byte each for 4 bits and narrower, a float for float16 and the like.
 * NULL for values that the program does not compute. Valid after a run of a program with keep_all,
 * and for graph inputs, outputs and constants always; of the others only in the observer. */
const void *runner_value(const Runner *r, const Value *v);
/* The dimensions that a value had in the last run, MAX_RANK at most; its rank. */
int runner_shape(const Runner *r, const Value *v, int64_t *dims);
/* True when the last run computed this value (a branch of If not taken leaves its values out). */
bool runner_computed(const Runner *r, const Value *v);

/* Calls fn for each computed value (graph inputs first) as soon as its elements are complete; needs
 * no keep_all, but leaves out what is never in the order of ONNX unless `observed` was set. */
typedef void RunnerObserver(void *ctx, const Value *v, const void *data);
void runner_observe(Runner *r, RunnerObserver *fn, void *ctx);

/* Elements [0, n) of a value of type t as real numbers: dequantized where t is quantized. `data` as
 * runner_value gives it. */
void type_reals(Type t, const void *data, size_t n, double *out);
/* The same of the elements at the `n` places `at`. */
void type_reals_at(Type t, const void *data, const size_t *at, size_t n, double *out);

#endif
