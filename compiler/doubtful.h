/* Numbers that can hardly be meant: told in warnings. Nothing here fails or changes anything. */
#ifndef QXC_COMPILER_DOUBTFUL_H
#define QXC_COMPILER_DOUBTFUL_H

#include "compiler/pipeline.h"

/* Of a module that was calibrated: inputs that were 0 throughout. */
void warn_of_zero_inputs(const Module *m, Diags *d);
/* What a graph input is to hold as far as that is known before calibration: by the model's
 * statistics, or by the grid that a rule states. */
typedef struct Expected {
    const char *by; /* NULL: nothing is known */
    double min, max;
} Expected;
const Expected *expected_inputs(Module *m, const PassContext *c);
/* Inputs whose data are ten times as wide as was expected, or a tenth: 0 to 255 for 0 to 1. */
void warn_of_far_inputs(const Module *m, const Expected *before, Diags *d);
/* What the first BatchNormalization of a float model was trained to give, before anything is
 * folded: results of variance gamma^2 around beta in each channel. */
struct Trained {
    Str value;
    double square; /* mean of squares; 0: there is no such node */
};
Trained trained_norm(const Module *m);
/* Its result in the calibration run is more than ten times as large: 0 to 255 for 0 to 1. (Data too
 * small by as much leave the channels' means, which say nothing.) */
void warn_of_far_norm(const Module *m, const Trained *t, Diags *d);
/* Of decisions, `float ~ q`: constants that hold NaN, or whose grid costs 6 dB more than that of
 * their range does, and from 8 bits on those that reach beyond twice its end. Clipping less than
 * that may be meant, as weights of few bits are by least squares. */
void warn_of_clipped(Module *m, Diags *d);
/* Of values of up to 16 bits: grids that clip more than 0.1 % of what the statistics say was seen,
 * below 8 bits 1 %, or that hold less than half of it; from 8 bits on also those whose steps are
 * more than twice (6 dB) as coarse as that needs. */
void warn_of_contradicted(Module *m, Diags *d);

/* Of a module that came with decisions: rules of its own whose types none of them has, or that name
 * what there is not. False after an error: no opset has the operator of a rule. */
bool warn_of_unheeded(Module *m, const PassContext *c);
/* Of one whose decisions were carried out: nodes that are integer though they were to stay float.
 * What is remarked of them is forgotten. */
void warn_of_unkept(Module *m, PassContext *c);

#endif
