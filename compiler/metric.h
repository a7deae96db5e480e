/* -metric=CMD: a number of the user's own that says how good a model's outputs are; larger is
 * better.
 *
 * CMD is run by a shell with the path of an .npz, in the place of {} or as its last word, and
 * prints one number. The file holds the outputs on the samples that are judged by, as `qxc run`
 * writes them; those of the float model as `float:NAME`; and as `qxc:samples` the numbers of the
 * samples among all of -calib, from 0 on, which tell which labels are theirs. */
#ifndef QXC_COMPILER_METRIC_H
#define QXC_COMPILER_METRIC_H

#include "compiler/session.h"

typedef struct MetricSide {
    Module *m; /* made ready to run */
    const Batch *batch;
} MetricSide;

/* Runs `is`, and `of_float` beside it, on that part of -calib, and CMD on what they yield. False
 * after a diagnostic: also where CMD fails, or prints anything but one finite number. */
bool metric_measure(Session *s, MetricSide is, MetricSide of_float, SamplePart part, double *out);

#endif
