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

typedef struct CalibOptions {
    CalibMethod method;
    double percentile; /* 0: 99.999 */
    double averaging;  /* weight of a new sample: m += averaging * (x - m); 0: all weigh the same */
    bool symmetric;    /* percentile, entropy, mse: one threshold for |x| in place of two */
    int64_t levels;    /* entropy, mse: integers that a range is divided into; 0: 256 */
    bool on_grids;     /* values of type `float ~ q` are rounded to their grid */
    bool keep;         /* statistics hold what merging needs: method, extremes, histogram */
    /* Elements of `v` below this count for nothing behind it, -infinity: all count. Asked when
     * every value has its extremes, where the method reads a histogram; NULL: all count. */
    float (*counts_from)(const void *ctx, const Value *v);
    const void *ctx;
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
/* Says in the entries `method`, `seen` and `hist` of a stat what another one can be joined with:
 * the extremes, and the bins in use as numbers and counts in turn (exec/histogram.h). */
void calib_keep(Arena *a, Stat *s, const CalibOptions *o, Bins bins, Range seen);
/* The same entries in the memory of another module. */
void calib_copy_kept(Arena *a, const Stat *from, Stat *to);
/* Drops them, once a quantization has been chosen from the range. */
void calib_forget(Stat *s);
/* Where `x` and `y` hold such entries of one method: joins them into `out`, whose counts are set,
 * and takes its range from them. False where they do not. */
bool calib_join(Arena *a, const Stat *x, const Stat *y, Stat *out);

Stat *calib_stat(Arena *a, double min, double max, double avg, double std, int64_t count);

/* Statistics of two calibrations of the same model merged into `to` (qxc stats merge): weighted by
 * count, ranges by their method where both have kept what it needs. A value without counterpart in
 * `to`, or whose statistics are per index of another axis, is an error; all are reported. Of
 * statistics by different methods a warning says that the wider range is taken. */
bool stats_merge(Module *to, const Module *from, Diags *d);

#endif
