/* An output that joins several values (Concat), as detectors give boxes and scores in one tensor: a
 * number for all of it is that of the large ones, whatever became of the small. */
#ifndef QXC_COMPILER_MEASURED_JOINED_H
#define QXC_COMPILER_MEASURED_JOINED_H

#include "exec/error_sums.h"
#include "ir/ir.h"

enum { JOINS_DEEP = 3, JOINED_MOST = 8 };

/* Indices along an axis of the output. */
typedef struct Stretch {
    int axis;
    int64_t from, to;
} Stretch;

/* One of the values that a Concat joins: where it stands in the output, inside of as many others as
 * there are stretches. */
typedef struct Part {
    Str name;
    Stretch stretch[JOINS_DEEP];
    int n_stretches;
    bool one_scale; /* what joins it is integers with one scale */
    ErrorSums sums;
} Part;

typedef struct Parts {
    Part *at;
    size_t n, cap;
} Parts;

/* What the output `y` joins, and what that joins in turn, seen through nodes that only move
 * elements. Joins of unknown lengths or of more than JOINED_MOST values are left out. Memory is the
 * module's. */
Parts parts_of(const Value *y);
/* The numbers x[n] of the float model and y[n] of the other stand at at[n] in an output whose type
 * is `now` in this sample. */
void parts_add(Parts *p, Type now, const size_t *at, const double *x, const double *y, size_t n);
/* The part that keeps least, where it keeps much less than `whole` (dB); NULL: none does. */
const Part *parts_worst(const Parts *p, double whole);

#endif
