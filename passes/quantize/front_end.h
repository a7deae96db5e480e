/* What front_end.c and front_lost.c share. */
#ifndef QXC_PASSES_QUANTIZE_FRONT_END_H
#define QXC_PASSES_QUANTIZE_FRONT_END_H

#include "passes/edit.h"
#include "passes/quantize/front_wide.h"

typedef struct Front {
    PassContext *c;
    Module *m;
    Uses *uses;
    int *layers;  /* by value id: products with constant weights before it, along the longest way */
    bool *near;   /* by node id: a node of the front */
    bool *spared; /* by node id */
    bool *measured;        /* by value id */
    double *error;         /* by value id: mean squared, of `measured` ones */
    bool *dropped;         /* by value id: it has another quantization now, or none */
    const Quant **decided; /* by value id: what it had */
    double was, is;        /* dB of the output that gains most */
    bool better;           /* it stays so */
    bool *weight; /* by value id: of a product; in float while errors are measured, as rounding
                     weights is no matter of where a layer stands */
    Wide *wide;   /* NULL: what is lost becomes float */
} Front;

/* ---- front_lost.c ---- */

/* The errors of what are the outputs now. False after a diagnostic. */
bool front_measure_outputs(Front *f);
/* The errors of all results near the inputs: nothing behind them runs. */
bool front_measure(Front *f);
/* Whether there is a node more to spare; marks all that follow from those. */
bool front_find_lost(Front *f);
/* Products with constant weights, recurrent layers. */
bool front_is_layer(const Node *n);
/* Singled out by a rule: what it says holds. */
bool front_is_stated(const Front *f, const Value *v);

#endif
