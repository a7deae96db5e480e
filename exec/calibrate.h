/* Calibration: runs a float program over samples and records what each value does.
 *
 * Every value of the main graph and of branches gets a Stat (ir.h): min, max, avg, std, count. One
 * pass, memory independent of the number of samples. Values that were never computed, or that are
 * not float, get none, and neither do those behind operators that cannot run. NaN is left out of
 * the numbers and reported as a warning, where it begins; so is infinity. */
#ifndef QXC_EXEC_CALIBRATE_H
#define QXC_EXEC_CALIBRATE_H

#include "exec/kept.h"
#include "exec/range.h"
#include "exec/samples.h"

typedef enum CalibMethod {
    CALIB_MINMAX,
    CALIB_MOVING_AVERAGE, /* min and max of each sample, averaged */
    CALIB_PERCENTILE,     /* the range that holds `percentile` percent of the elements */
    CALIB_ENTROPY,        /* the symmetric range with the smallest Kullback-Leibler divergence */
    CALIB_MSE,            /* the range with the smallest mean squared error at 8 bits */
} CalibMethod;

/* Elements of `v` below this count for nothing behind it, -infinity: all count. Asked when every
 * value has its extremes, where the method reads a histogram. */
typedef float CountsFrom(const void *ctx, const Value *v);

/* Sees what a value of float is in one sample, with the type that it has there. */
typedef void CalibObserver(void *ctx, const Value *v, Type type, const void *data);

typedef struct CalibOptions {
    CalibMethod method;
    double percentile; /* 0: 99.999 */
    double averaging;  /* weight of a new sample: m += averaging * (x - m); 0: all weigh the same */
    bool symmetric;    /* percentile, entropy, mse: one threshold for |x| in place of two */
    int64_t levels;    /* entropy, mse: integers that a range is divided into; 0: 256 */
    bool on_grids;     /* values of type `float ~ q` are rounded to their grid */
    bool keep;         /* statistics hold what shards are joined by (shard.h) */
    CountsFrom *counts_from; /* NULL: all count */
    const void *ctx;
    CalibObserver *also; /* looks on, or NULL */
    void *also_ctx;
} CalibOptions;

typedef struct CalibReport {
    size_t samples;
    size_t values;           /* that got statistics */
    size_t skipped;          /* float values that were never computed */
    const LeftOut *left_out; /* what has none as it cannot run; NULL before a calibration */
} CalibReport;

/* The method's name as in -calib-method=minmax, moving-average, moving-average=0.01,
 * percentile=99.99, entropy, mse. False when it is none of them. */
bool calib_parse(Str text, CalibOptions *o);

/* `report` may be NULL. Replaces earlier statistics. The module is otherwise unchanged. `kept`
 * (exec/kept.h), or NULL, takes what the model gives for some samples. */
bool calibrate(Module *m, Samples *s, const CalibOptions *o, KeptRun *kept, CalibReport *report,
               Diags *d);

/* Whether the method reads its range off a histogram. */
bool calib_needs_histogram(CalibMethod m);
/* What the method makes of a histogram and the true extremes. */
Range calib_range(Arena *a, const CalibOptions *o, Bins bins, Range seen);
/* The method as statistics state it: "percentile=99.9", and where they matter, "mse levels=16
 * symmetric"; and back, false where it is none. */
Str calib_method_text(Arena *a, const CalibOptions *o);
bool calib_read_method(Str text, CalibOptions *o);
/* Of the same parameters, too. */
bool calib_same_method(const CalibOptions *x, const CalibOptions *y);

Stat *calib_stat(Arena *a, double min, double max, double avg, double std, int64_t count);

/* Statistics of several calibrations of the same model joined in `to` (qxc stats merge): where all
 * hold what shards state (exec/shard.h), bit by bit those of one calibration on all the data,
 * whatever the order. Else averages weigh by count, and where methods differ the range is the wider
 * one; both are told, once. */
typedef struct StatsMerge StatsMerge;
/* NULL after diagnostics. */
StatsMerge *stats_merge_begin(Module *to, Diags *d);
/* One more, which is read and not kept. A value without counterpart in `to`, statistics per index
 * of another axis, and a method that depends on the order of samples are errors; all are reported.
 */
bool stats_merge_add(StatsMerge *m, const Module *from);
/* The ranges. `counts_from` with its `ctx` as in CalibOptions. */
void stats_merge_end(StatsMerge *m, CountsFrom *counts_from, const void *ctx);

#endif
