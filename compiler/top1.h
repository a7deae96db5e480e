/* Top-1 accuracy: how often the largest element of a model's first output is at the place that a
 * label says. */
#ifndef QXC_COMPILER_TOP1_H
#define QXC_COMPILER_TOP1_H

#include "exec/samples.h"

typedef struct Labels {
    int64_t *of; /* by sample */
    size_t n;
} Labels;

/* Array `key` of every file that `paths` stand for, one integer a sample. False after a diagnostic.
 */
bool labels_read(Arena *a, const char *const *paths, size_t n, const char *key, Labels *out,
                 Diags *d);

/* In percent. The module is resolved, inferred, with static shapes, and has floats as its first
 * output. False after a diagnostic: also where samples and labels differ in number, or there is no
 * output. */
bool top1_accuracy(Module *m, const char *const *paths, size_t n, const Labels *labels,
                   double *percent, Diags *d);

#endif
