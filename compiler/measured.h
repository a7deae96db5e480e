/* How far a quantized model is from the float one, on a few samples of the calibration data.
 *
 * The float side is what calibration kept (exec/kept.h). The other side is the module just before
 * its operators are spelled for a file, run as `qxc run` runs what is written: QDQ, QOperators and
 * C on integers, a text of decisions (`float ~`) in float and rounded. So the result costs one run
 * of at most 32 samples more, and nothing in it changes the module.
 *
 * An output counts as classes where it is float, its shape is [N, C] or [N, C, 1, ...] with 2 to
 * 65536 elements in a sample and C of 2 or more, and where it comes from Softmax, LogSoftmax or a
 * product with constant weights (Gemm, MatMul, Conv); data movers, conversions and Add of a
 * constant may stand between. A product with as many elements as an input of the model is no
 * classifier but an autoencoder. */
#ifndef QXC_COMPILER_MEASURED_H
#define QXC_COMPILER_MEASURED_H

#include "compiler/measured_joined.h"
#include "compiler/pipeline.h"
#include "exec/compare.h"

enum { MEASURED_WORST = 3, MEASURED_LAYERS = 5, MEASURED_LITTLE = 15 /* dB */ };

typedef struct MeasuredOutput {
    Str name;
    bool computed;       /* by both models */
    const char *why_not; /* behind "as"; or NULL: it is */
    bool integer;
    bool steady; /* the float model gives the same for all samples, of which there are several */
    bool classes;
    ErrorSums sums;
    Parts parts;           /* the same, of what the output joins */
    size_t unlike;         /* samples in which other elements than in the float model were chosen */
    size_t equal;          /* elements */
    size_t float_odd, odd; /* elements that are NaN or infinite */
    size_t rows, agree;    /* of classes: those compared, with the same largest element */
    size_t nan_rows;       /* not compared, as the float model has NaN there */
} MeasuredOutput;

typedef struct MeasuredValue {
    Str name;    /* of a value, or of the layer that made it */
    double sqnr; /* dB */
} MeasuredValue;

struct Measured {
    size_t samples, of;
    MeasuredOutput *outputs;
    size_t n_outputs;
    MeasuredValue worst[MEASURED_WORST];   /* values in between */
    MeasuredValue layers[MEASURED_LAYERS]; /* with the worst results, as -keep knows them */
    size_t n_worst, n_layers;
    const char *advice; /* what may help where that is little */
};

/* Sets j->measured where there is something to measure and it can run, else j->unmeasured. */
void measure_result(Job *j, Module *m);
/* What is likely to help this model, in words behind a colon (measured_advice.c). */
const char *measured_advice(const Job *j, Module *m, const Measured *x);
/* Ends the summary: what was measured, or that nothing was. */
void measured_print(const Job *j);

#endif
