/* How far numbers are from a reference: sums from which signal to noise and the largest error
 * follow. */
#ifndef QXC_EXEC_ERROR_SUMS_H
#define QXC_EXEC_ERROR_SUMS_H

#include <stddef.h>

/* Of one pair of values, over all that was added. Elements where one is NaN or infinite count in
 * max_abs alone. */
typedef struct ErrorSums {
    double xx, yy, xy, dd, max_abs;
    size_t count, finite; /* finite: numbers on both sides */
} ErrorSums;

/* n elements more, `x` the reference. */
void error_add(ErrorSums *s, const double *x, const double *y, size_t n);
/* 20 log10(|x| / |x - y|) in dB; INFINITY where equal. */
double error_sqnr(const ErrorSums *s);

#endif
