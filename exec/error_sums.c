#include "exec/error_sums.h"

#include <math.h>
#include <stdbool.h>

void error_add(ErrorSums *s, const double *x, const double *y, size_t n) {
    s->count += n;
    for (size_t i = 0; i < n; i++) {
        bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
        double d = same ? 0 : fabs(x[i] - y[i]);
        if (isnan(d) || d > s->max_abs) /* once NaN, always NaN: no d is larger */
            s->max_abs = d;
        if (!isfinite(x[i]) || !isfinite(y[i]))
            continue;
        s->finite++;
        s->xx += x[i] * x[i];
        s->yy += y[i] * y[i];
        s->xy += x[i] * y[i];
        s->dd += d * d;
    }
}

double error_sqnr(const ErrorSums *s) {
    if (s->dd == 0)
        return isnan(s->max_abs) || isinf(s->max_abs) ? -INFINITY : INFINITY;
    return s->xx == 0 ? -INFINITY : 10 * log10(s->xx / s->dd);
}
