/* What `run` does not report, and why: values that some sample has not computed, that are another
 * number for each number of samples, that have other shapes for other samples, or that the run does
 * not have at all. */
#ifndef QXC_COMPILER_LEFT_OUT_H
#define QXC_COMPILER_LEFT_OUT_H

#include "compiler/columns.h"

/* Why a run has no array of a value. */
typedef enum WhyLeftOut {
    NOT_LEFT_OUT,
    LACKS_SAMPLES,
    COUNTS_SAMPLES,
    VARIES,
    NOT_THERE,
    N_WHYS_LEFT_OUT
} WhyLeftOut;

WhyLeftOut column_left_out(const Column *c, const Arrangement *as);

/* Values by the reason for which they are left out. */
typedef struct ValuesLeftOut {
    Arena *arena;
    Map *own; /* names of what nodes of the model, as it came, compute; NULL: no values are asked
                 for */
    Str first[N_WHYS_LEFT_OUT];
    size_t n[N_WHYS_LEFT_OUT];
} ValuesLeftOut;

/* Of a model before anything changes it. */
ValuesLeftOut values_of_file(Module *m, bool all);
void values_leave_out(ValuesLeftOut *l, Str name, WhyLeftOut why);
/* A remark for each reason, of the run that had these columns. */
void values_tell_left_out(ValuesLeftOut *l, const Column *cols, size_t n, Diags *d);

#endif
