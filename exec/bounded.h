/* Programs of models in which lengths are known only as they run (NonZero, NonMaxSuppression, Range
 * of an input), with a bound for each: what emitted C needs, which allocates nothing.
 *
 * A node states it (ir/bound.h). The program is bound with the largest lengths, which is
 * what its memory is laid out for, and again with others: params that change must do so along a
 * straight line, and are computed from the lengths in each run (Patches); all else must be the
 * same. So calls are those that a program of just these lengths makes, over its elements alone.
 * Where a tensor is shorter than it can be, its elements stand at the front, in the order of its
 * shape. A length beyond its bound ends the run before anything is written (CALL_CHECK). */
#ifndef QXC_EXEC_BOUNDED_H
#define QXC_EXEC_BOUNDED_H

#include "exec/exec.h"

/* As program_build, of a module whose nodes may state bounds. Shapes stay those of the largest
 * lengths. NULL after diagnostics: what needs a bound and has none, with the option that states
 * one; what computes in another way for each length. */
Program *program_build_bounded(Module *m, const ProgramOptions *o, Diags *d);

/* False after an error that says why C takes no bound for v, a result of n whose shape follows from
 * numbers that are not known, and what to do. `option` stands in front. True where that is not so.
 */
bool bounded_refuse(Diags *d, Loc at, const char *option, const Node *n, const Value *v);

#endif
