/* An output that joins several values (Concat), as detectors give boxes and scores in one tensor: a
 * number for all of it is that of the large ones, whatever became of the small. */
#ifndef QXC_COMPILER_MEASURED_JOINED_H
#define QXC_COMPILER_MEASURED_JOINED_H

#include "exec/error_sums.h"
#include "ir/ir.h"

enum { JOINS_MOST = 3, JOINED_MOST = 8 };

/* What one Concat joins, along one axis of the output. */
typedef struct Joined {
    int axis;
    int64_t length; /* of the axis */
    size_t n;
    Str name[JOINED_MOST];
    int64_t end[JOINED_MOST]; /* indices along the axis */
    ErrorSums sums[JOINED_MOST];
} Joined;

typedef struct Joins {
    Joined at[JOINS_MOST];
    size_t n;
    bool one_scale; /* for all parts of one of them, which is quantized */
} Joins;

/* What the output `y` joins, and what the first part of that joins in turn, seen through nodes that
 * only move elements. Joins of unknown lengths or of more than JOINED_MOST values are left out. */
Joins joins_of(const Value *y);
/* The numbers x[n] of the float model and y[n] of the other stand at at[n] in an output whose type
 * is `now` in this sample. */
void joins_add(Joins *j, Type now, const size_t *at, const double *x, const double *y, size_t n);
/* The part that keeps least, where it keeps much less than `whole` (dB): its name, STR_NONE where
 * none does. */
Str joins_worst(const Joins *j, double whole, double *sqnr);

#endif
