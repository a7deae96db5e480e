/* How far the outputs of a quantized model are from those of the float one, on data. */
#ifndef QXC_COMPILER_JUDGE_H
#define QXC_COMPILER_JUDGE_H

#include "compiler/options.h"
#include "exec/compare.h"

typedef struct Judge {
    Arena *arena; /* of texts, which outlive the modules */
    const TextList *data;
    SamplePart part;
    const char *options; /* that ask for it, as errors begin: "-min-sqnr: ", or "" */
} Judge;

typedef struct Judged {
    double sqnr;            /* dB, of the worst output; -INFINITY where that is unmeasured */
    const char *unmeasured; /* why no number says how far it is; NULL: one does */
    const char *advice;     /* what may help with that */
} Judged;

/* Runs both modules, made ready by job_prepare_pair; `c` gets all values, in memory of `a`. A gate
 * does not hold for what nobody has seen: an output that nothing measures is the worst. False after
 * a diagnostic. */
bool judge_outputs(const Judge *j, Module *a, Module *b, Comparison *c, Judged *out, Diags *d);
/* "'y' (Conv)". */
const char *judge_value_text(Arena *a, const Value *v, Diags *d);

#endif
