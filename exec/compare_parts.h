/* Comparing two models inside: which values are paired (compare_pair.c), and how they are run and
 * compared (compare.c). */
#ifndef QXC_EXEC_COMPARE_PARTS_H
#define QXC_EXEC_COMPARE_PARTS_H

#include "exec/compare.h"
#include "exec/picks.h"

typedef struct Side {
    Module *module;
    ModelRun *run;
    Samples *samples;
    const Value **values; /* that nodes compute, in order */
    size_t n, cap;
    const bool *apart;  /* by node id: it is left out, or follows from a choice (exec/choice.h) */
    const bool *picked; /* by node id: choice_picked */
    Picks *picks;
} Side;

/* Lists what nodes compute, and those nodes that are set apart. */
void compare_list(Side *s);
/* Rows for all values that both have by name, and for outputs. False after a diagnostic. */
bool compare_pair(const Side *a, const Side *b, Comparison *out, Diags *d);
/* A result that is rounded, and that no row says anything of; NULL: there is none. */
const Value *compare_unmeasured(const Side *s, const Comparison *c);

#endif
