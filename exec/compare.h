/* Comparing two models on the same samples, value by value.
 *
 * Values are paired by name (outputs that have no namesake by position); quantized ones are
 * compared as the real numbers they stand for. Sums run over all elements of all samples in fixed
 * order. Of partial programs (exec/exec.h) what is there is compared. Where shapes depend on the
 * data (exec/evaluate.h), those are values of the main graph; of what has as many elements as were
 * chosen, in samples in which both chose the same (exec/choice.h). Fails with diagnostics when a
 * module cannot run or an output does not fit. */
#ifndef QXC_EXEC_COMPARE_H
#define QXC_EXEC_COMPARE_H

#include "exec/error_sums.h"
#include "exec/model_run.h"

/* Whether only a clamp of the same quantization reads the value (Conv before Relu): it is cut off
 * on purpose, and what it loses means nothing. */
bool is_cut_by_clamp(const Uses *uses, const Value *v);

typedef struct CompareRow {
    Str name;
    const Value *a, *b;
    bool is_output; /* of the model */
    bool stands_in; /* a float that is read by what is left out, or follows from a choice */
    size_t count;   /* elements compared, all samples */
    size_t unlike;  /* samples in which a and b chose other elements, which are not compared */
    double sqnr;    /* 20 log10(|x| / |x - y|) in dB; INFINITY where equal */
    double max_abs; /* largest |x - y|; NAN where one of both is NaN and the other is not */
    double cosine;  /* 1 where both are zero */
    double power;   /* mean square of the reference; 0 without elements */
} CompareRow;

/* What the sums say of a pair. */
void compare_finish(CompareRow *row, const ErrorSums *s);

typedef struct Comparison {
    CompareRow *rows; /* in the order in which `a` computes, outputs last */
    size_t n;
    size_t samples;
    const Value
        *unmeasured;     /* the first of b that is rounded behind what cannot run, or where all
                            samples chose other elements: no row says what that costs; NULL: none */
    const Value *folded; /* of weights, the first of b that took in other nodes: no constant of a
                            has its numbers */
    size_t n_folded;
    bool in_part; /* an output is left out, or chosen otherwise in a sample: what it is made of
                     stands for it */
    const Value *unseen; /* of b, an output for which, there, no number stands; NULL: none */
    size_t unseen_in;    /* samples */
} Comparison;

/* Whether the row says how good the model is: outputs do, and where that is in part, what stands in
 * for them. */
bool compare_judges(const Comparison *c, const CompareRow *r);

/* The samples to compare on: of files, or without any `random` > 0 made up for the first model,
 * which the second gets as the same real numbers. */
typedef struct CompareData {
    const char *const *paths;
    size_t n;
    SamplePart part; /* of those in files */
    size_t random;
} CompareData;

/* `a` is the reference. Both modules resolved, inferred, static. NULL options: the defaults. */
bool compare_modules(Module *a, Module *b, const CompareData *data, const ProgramOptions *options_a,
                     const ProgramOptions *options_b, Comparison *out, Diags *d);

/* The constants that nodes of the main graph compute with, as real numbers: those that have the
 * same name in both models and the same shape, or that nodes of the same result read at the same
 * place. In the order of a's nodes; `samples` is 0. */
void compare_weights(Module *a, Module *b, Comparison *out);

#endif
