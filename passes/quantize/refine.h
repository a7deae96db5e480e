/* Scales and integers of rounded weights improved in turn, on how their operand varies: what
 * AdaQuant (Hubara et al. 2020) and SeqMSE look for, for weights that are rounded already.
 *
 * With G = E[x x^T] the error of a channel's sum is e^T G e, e = aim - s q. For given integers the
 * best scale of a block is a division; for given scales each integer by itself has a best value,
 * too, as coordinate descent takes it. Each step makes the error smaller, or leaves it. */
#ifndef QXC_PASSES_QUANTIZE_REFINE_H
#define QXC_PASSES_QUANTIZE_REFINE_H

#include "passes/quantize/weight_error.h"

typedef struct Refine {
    const WeightMatrix *w;
    const double *gram;  /* [terms, terms], the whole symmetric square, of the channel's group */
    float *scale;        /* of all entries of w->quant: in and out; NULL: they are to stay */
    const double *least; /* by channel: scales do not become smaller; NULL: as small as they like */
} Refine;

/* How many doubles refine_channel works on. */
size_t refine_scratch(size_t terms);
/* `numbers`: of the channel's terms, on the grid of r->scale (or w->quant); become better ones, on
 * that of the scales that come out. Pure, for one of several threads: of the scales it touches
 * those of the channel alone. */
void refine_channel(const Refine *r, size_t channel, const double *aim, float *numbers,
                    double *scratch);
/* Whether each entry of the weight's scales belongs to one channel: else they have to stay. */
bool refine_takes_scales(const WeightMatrix *w);

#endif
