/* An output that joins several values (Concat), as detectors give boxes and scores in one tensor: a
 * number for all of it is that of the large ones, whatever became of the small. */
#ifndef QXC_COMPILER_MEASURED_JOINED_H
#define QXC_COMPILER_MEASURED_JOINED_H

#include "exec/error_sums.h"
#include "ir/ir.h"

/* One of the values that a Concat joins: indices along an axis of the output, inside of the part
 * that the Concat is in turn. */
typedef struct Part {
    Str name;
    int axis;
    int64_t from, to;
    size_t next;    /* behind the parts of this one, which follow it */
    bool one_scale; /* what joins it is integers with one scale */
    ErrorSums sums;
} Part;

typedef struct Parts {
    Part *at;
    size_t n, cap;
    int rank; /* of the output */
} Parts;

/* What the output `y` joins, and what that joins in turn, seen through nodes that only move
 * elements. Joins of unknown lengths, of many values or deep inside of others are left out. Memory
 * is the module's. */
Parts parts_of(const Value *y);
/* The numbers x[n] of the float model and y[n] of the other stand at at[n] in an output whose type
 * is `now` in this sample. */
void parts_add(Parts *p, Type now, const size_t *at, const double *x, const double *y, size_t n);
/* The part that keeps least, where it keeps much less than `whole` (dB); NULL: none does. */
const Part *parts_worst(const Parts *p, double whole);

#endif
