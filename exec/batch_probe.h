/* A module at two sizes of the dimension that may count samples: what each value is there, and
 * which axis of it grows. For exec/batch.c and batch_trace.c. */
#ifndef QXC_EXEC_BATCH_PROBE_H
#define QXC_EXEC_BATCH_PROBE_H

#include "ir/ir.h"

/* The sizes tried first. At 1 the model runs, sample by sample. The others are primes, so that few
 * products of dimensions are divided by them, and leave other remainders than 1. */
enum { FEW = 1, MANY = 11 };

/* What a value is at one of the sizes. */
typedef struct Snapshot {
    Type type;
    const Tensor *data; /* of a constant */
} Snapshot;

typedef struct Probe {
    Snapshot *of; /* by value id */
    uint32_t n;
    int64_t size;
    bool fits; /* the module's shapes at this size */
} Probe;

/* `sizes` as batch_find has them. The module keeps that size until shapes_undo. */
Probe batch_probe(Module *m, const int64_t *sizes, int64_t size, Diags *quiet);

/* Elements behind one step along `axis`. */
int64_t axis_step(Type t, int axis);
/* The axis of a type at a size on which samples stand `stride` elements apart, -1 where they are
 * spread over several. Each fills `inner` numbers of it in a row. */
int axis_of_samples(Type t, int64_t size, int64_t stride, int64_t *inner);
/* The axis that grows from one sample to `size` of them. */
enum { NO_AXIS = -1, SEVERAL = -2 };
int growing_axis(Type few, Type many, int64_t size);

/* Of a constant at both sizes: whether it has the same numbers, */
bool snapshot_same(const Snapshot *few, const Snapshot *many);
/* whether, along the axis that grows, the first `samples` of them have the numbers of the one, */
bool snapshot_repeats(const Snapshot *few, const Snapshot *many, int axis, int64_t samples);
/* and whether the indices of each are those of the one, moved on by as many rows as are its own,
 * which these never leave. */
bool snapshot_counts(const Snapshot *few, const Snapshot *many, int axis, int64_t rows);
/* How many samples constants that depend on their number have room for, 0 where there are none. */
int64_t probe_room(const Probe *few, const Probe *many);
/* The first prime from `least`, 2 or more, on. */
int64_t probe_size(int64_t least);

#endif
