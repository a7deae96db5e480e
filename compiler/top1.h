/* Top-1 accuracy: how often the largest element of a model's first output is at the place that a
 * label says. It is judged on the samples that are held back from calibration (SAMPLES_HELD_BACK),
 * as data that a model was fitted to says too little of other data. */
#ifndef QXC_COMPILER_TOP1_H
#define QXC_COMPILER_TOP1_H

#include "exec/samples.h"

typedef struct Labels {
    int64_t *of; /* by sample, of all of them */
    size_t n;
} Labels;

/* Which of the samples held back a model answers as the label says. */
typedef struct Answers {
    bool *right;
    size_t n, n_right;
    size_t n_nan;     /* in which a number is NaN, so that no class has the largest; not right */
    size_t classes;   /* elements of the output */
    size_t *of_class; /* samples of each, by their labels */
} Answers;

/* What accuracy one model loses against another, in percentage points. */
typedef struct Drop {
    double points; /* as measured; negative where it gains */
    double sure;   /* with a confidence of 95 % it is at most this, on data of the same kind */
} Drop;

/* Array `key` of every file that `paths` stand for, one integer a sample. False after a diagnostic.
 */
bool labels_read(Arena *a, const char *const *paths, size_t n, const char *key, Labels *out,
                 Diags *d);

/* The module is resolved, inferred, with static shapes, and has floats as its first output. False
 * after a diagnostic: also where samples and labels differ in number, a label is no class, there is
 * no output, or nothing is held back. `a` gets the answers. */
bool top1_answers(Arena *a, Module *m, const char *const *paths, size_t n, const Labels *labels,
                  Answers *out, Diags *d);
/* Whether there is no largest of `n` numbers, as one is NaN. */
bool top1_has_nan(const double *x, size_t n);
/* The place of the largest of `n` numbers, the first of them; none is NaN. */
size_t top1_of(const double *x, size_t n);
double top1_percent(const Answers *x);

/* The upper bound is one-sided, by the score interval for the difference of paired proportions
 * (Tango 1998, Statistics in Medicine 17, equations 5 to 7): answers that both models share tell
 * nothing, the others are weighed against each other. */
Drop top1_drop(const Answers *of_float, const Answers *of_quantized);
/* One line on what the float model is judged by, of `samples` in all. */
void top1_print(const Answers *of_float, size_t samples, FILE *to);
/* Warns where the labels say nothing, or where so few samples cannot tell a drop of `most_drop`
 * points: where no answer at all changes, `sure` is the least that it can be. */
void top1_warn(const Answers *of_float, double most_drop, Diags *d);

#endif
