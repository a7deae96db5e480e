/* Whether an open dimension counts samples that have nothing to do with one another.
 *
 * It does where each result holds them apart: then a model that is computed for one sample at a
 * time, with the dimension 1, gives what it gives for all at once. This follows from the graph.
 * Types and constants of the module with the dimension at two sizes tell which axis of each value
 * grows with it; the operators (OpDef.slices) tell whether they keep what stands along that axis
 * apart. What is not known counts as mixed: computing all at once is never wrong. */
#ifndef QXC_EXEC_BATCH_H
#define QXC_EXEC_BATCH_H

#include "ir/ir.h"

typedef enum BatchKind {
    BATCH_APART,   /* samples */
    BATCH_SCALE,   /* samples that share a scale which `node` computes of all at once */
    BATCH_MIXED,   /* no samples: `node` mixes them, or `why` says what else is wrong */
    BATCH_UNKNOWN, /* `node` is one that nothing is known of */
    BATCH_ONE,     /* the model fits together at size 1, and at none of the others tried */
} BatchKind;

typedef struct Batch {
    BatchKind kind;
    const Node *node;
    const char *why;
    uint32_t n_values;
    /* BATCH_APART and BATCH_SCALE, by value id: elements from a sample to the next in a value that
     * holds several; 0 where a value is the same for all. */
    int64_t *stride;
    int *axis; /* which of its dimensions grows */
} Batch;

/* `sizes` has the first dimension of each graph input: BATCH_SIZE those that are to count samples,
 * BATCH_LEAVE those that stay as they are. All dimensions are known then. The module is as before
 * afterwards; nothing is said. `most`: the largest size that data have, 0 where it is not known. */
enum { BATCH_LEAVE = -1, BATCH_SIZE = -2 };
Batch *batch_find(Module *m, const int64_t *sizes, int64_t most);
/* Whether the module's shapes fit together with these first dimensions (BATCH_LEAVE, or a size). */
bool batch_fits(Module *m, const int64_t *sizes);

#endif
