/* What rounding costs the outputs of a module with decisions. */
#ifndef QXC_PASSES_QUANTIZE_OUTPUT_ERRORS_H
#define QXC_PASSES_QUANTIZE_OUTPUT_ERRORS_H

#include "passes/pass.h"

/* The module as it was before (observe_reference), or with each value rounded as its `~` says.
 * Within shapes_fix and shapes_restore. The program lives in `a`. NULL after diagnostics. */
Program *output_program(Module *m, PassContext *c, Arena *a, bool quantized);

/* Whether -max-memory has room for `n` of these at a time; a remark says `what` is left undone
 * where it has none. */
bool output_programs_fit(Module *m, PassContext *c, size_t n, const char *what);

/* Does `work`, whose result is a choice that can be left as it is. False where it is false, a
 * program fails on the data, or memory does not last: no error of the model, but a remark says that
 * `what` is left undone, and why. */
typedef bool OutputWork(void *ctx);
bool output_look(Module *m, PassContext *c, const char *what, OutputWork *work, void *ctx);

typedef struct OutputErrors {
    const Program *p;
    double *error;   /* by value id, of `measured` ones: mean squared difference */
    bool *measured;  /* float outputs that both programs compute */
    double *dB;      /* the same error against the signal, as error_level; NULL: not asked for */
    double *dB_each; /* mean of that of each sample: one bad sample of many weighs little */
} OutputErrors;

/* What an error is of a signal's energy, in dB from -100, which is as good as equal, to 100, which
 * infinite ones have. */
double error_level(double error, double energy);

/* Runs the float program and `n` others, of the same module, on up to `most` samples of the
 * calibration data, within shapes_fix and shapes_restore. Only what the outputs need is run.
 * Samples of files are spread evenly over them: data is often sorted. What it runs on lives in `a`
 * (a program keeps its weights a second time, so it is given back). False after diagnostics of
 * the programs or the data. */
bool output_errors(Module *m, PassContext *c, Arena *a, size_t most, const Program *reals,
                   OutputErrors *of, size_t n);

/* Samples that a result is judged by, and whether of so many the rest is enough to mend it with. */
enum { OUTPUT_SAMPLES = 8 };
bool output_holds_back(size_t total);
/* Of `total` samples of files output_errors looks at those that are chosen: `most` of them, or all.
 */
bool output_sample_chosen(size_t i, size_t most, size_t total);

#endif
