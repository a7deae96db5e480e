/* Calibration: runs a float program over samples and records what each value does.
 *
 * Every value of the main graph and of branches gets a Stat (ir.h): min, max, avg, std, count. One
 * pass, memory independent of the number of samples. Values that were never computed, or that are
 * not float, get none. NaN is left out of the numbers and reported as a warning; so is infinity. */
#ifndef QXC_EXEC_CALIBRATE_H
#define QXC_EXEC_CALIBRATE_H

#include "exec/samples.h"

typedef enum CalibMethod {
    CALIB_MINMAX,
    CALIB_MOVING_AVERAGE, /* min and max of each sample, averaged: m += averaging * (x - m) */
    CALIB_PERCENTILE,     /* the range that holds `percentile` percent of the elements */
    CALIB_ENTROPY,        /* the symmetric range with the smallest Kullback-Leibler divergence */
    CALIB_MSE,            /* the range with the smallest mean squared error at 8 bits */
} CalibMethod;

typedef struct CalibOptions {
    CalibMethod method;
    double percentile; /* 0: 99.999 */
    double averaging;  /* weight of a new sample; 0: 0.01 */
    bool symmetric;    /* percentile, mse: one threshold for |x| in place of two */
} CalibOptions;

typedef struct CalibReport {
    size_t samples;
    size_t values;  /* that got statistics */
    size_t skipped; /* float values that were never computed */
} CalibReport;

/* The method's name as in -calib-method=minmax, moving-average, percentile=99.99, entropy, mse.
 * False when it is none of them. */
bool calib_parse(Str text, CalibOptions *o);

/* `report` may be NULL. Replaces earlier statistics. The module is otherwise unchanged. */
bool calibrate(Module *m, Samples *s, const CalibOptions *o, CalibReport *report, Diags *d);

Stat *calib_stat(Arena *a, double min, double max, double avg, double std, int64_t count);

/* Statistics of two calibrations of the same model merged into `to` (qxc stats merge): weighted by
 * count. A value without counterpart in `to`, or whose statistics are per index of another axis, is
 * an error; all are reported. */
bool stats_merge(Module *to, const Module *from, Diags *d);

#endif
