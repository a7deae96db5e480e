/* How many numbers there were, their sum and the sum of their squares: exact, so that neither the
 * order of numbers nor the shards that they came in change what follows from them. */
#ifndef QXC_EXEC_MOMENTS_H
#define QXC_EXEC_MOMENTS_H

#include "support/exact.h"

typedef struct Moments {
    int64_t count;
    Exact sum, squares;
} Moments;

/* Whether such sums exist: `squares` is no less than numbers of that mean have. */
bool moments_are_possible(const Moments *m);
/* False where the counts exceed 64 bits; then `to` stays. */
bool moments_join(Moments *to, const Moments *m);
/* Of a count above 0: each a function of exact sums, rounded behind them. */
double moments_mean(const Moments *m);
double moments_deviation(const Moments *m);

/* Counting: mantissas of floats add up as integers, apart for each exponent, which is as fast as an
 * addition of doubles. */
typedef struct MomentsBin {
    int64_t sum;
    uint64_t squares;
} MomentsBin;

typedef struct MomentsCounter {
    Moments m;          /* but for what the bins hold */
    uint32_t waiting;   /* elements in the bins */
    MomentsBin at[256]; /* by exponent, as a float has it; the last is of NaN and infinity */
} MomentsCounter;

/* Finite elements count, others do not: `finite` says how many are. */
void moments_count(MomentsCounter *c, const float *x, size_t n, size_t finite);
const Moments *moments_counted(MomentsCounter *c);

#endif
