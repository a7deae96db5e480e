/* What lengths that a run tells make of calls (Patches in program/program.h). */
#ifndef QXC_EXEC_LENGTHS_H
#define QXC_EXEC_LENGTHS_H

#include "program/program.h"

/* The number for these lengths. */
int64_t length_fn_at(LengthFn f, const int64_t *lengths, size_t n);
/* The params of a call for the lengths that its last arguments hold, written to `to`, which has
 * room for them; NULL where it has nothing to do. */
const void *call_params(const Call *c, void *const *args, void *to);
/* The bound that the model states of how long v is (ir/bound.h); `most` is -1 where there is none.
 * False after a diagnostic. */
bool length_bound_of(const Value *v, LengthBound *out, Diags *d);
/* False after a diagnostic: there is no room for so many. */
bool length_check(const LengthBound *b, int64_t length, Diags *d);

#endif
