/* Rounds the weights of a product up or down so that the errors of a sum cancel (adaround.c says by
 * what arithmetic), and improves them further. Memory is the arena's; nothing fails. */
#ifndef QXC_PASSES_QUANTIZE_ROUNDER_H
#define QXC_PASSES_QUANTIZE_ROUNDER_H

#include "passes/quantize/weight_error.h"

/* Weights of a node rounded in some way. */
typedef enum Way {
    WAY_PLAIN,   /* each to the nearest */
    WAY_ROUNDED, /* so that errors cancel */
    WAY_REFINED, /* and scales and integers improved in turn after that */
    WAYS,
} Way;

/* A whole weight, as it comes out. */
typedef struct Rounded {
    float *numbers[WAYS]; /* WAY_REFINED: NULL where nothing was set aside to judge it by */
    float *scale;         /* of WAY_REFINED; NULL: those that the weight has */
    double *least;        /* refine.h */
} Rounded;

/* What one weight after the other is worked on with. */
typedef struct Rounder Rounder;
Rounder *rounder_new(Arena *a);
/* `out` in the ways behind WAY_PLAIN, where data vary; the others stay as they came in. `centered`:
 * a bias takes what is left on average. */
void rounder_round(Rounder *by, const WeightMatrix *w, const MacData *data, bool centered,
                   Rounded *out);

#endif
