/* Scales and zero points for the groups of a weight: the numbers that share them, as the axes and
 * blocks of a quantization say. Weights may be larger than memory: no copy of one is made. */
#ifndef QXC_PASSES_QUANTIZE_WEIGHT_GROUPS_H
#define QXC_PASSES_QUANTIZE_WEIGHT_GROUPS_H

#include "passes/params.h"

typedef struct GroupParams {
    FitAim aim;
    float *scale; /* groups_count of them, row-major in the grid of blocks */
    int64_t *zp;
} GroupParams;

size_t groups_count(const Quant *q, const Tensor *t);

/* For each group of `t`, a float constant, what params_from_minmax gives for its range. `q` says
 * the axes, in rising order, and blocks; memory for the work is the arena's. */
void groups_from_ranges(GroupParams *p, const Quant *q, const Tensor *t, Arena *a);
/* The same by params_fit, for at most two axes. */
void groups_fit(GroupParams *p, const Quant *q, const Tensor *t, Arena *a);

#endif
