/* The weights of a node as one matrix, and what quantizing them does: shared by the passes that
 * mend it. Pure reading; nothing fails. */
#ifndef QXC_PASSES_WEIGHT_ERROR_H
#define QXC_PASSES_WEIGHT_ERROR_H

#include "passes/mac_data.h"

typedef struct WeightMatrix {
    const Tensor *data;
    const Quant *quant;
    size_t channels, per_group; /* output channels; of one group */
    size_t terms;
    size_t inner, axis; /* strides of the layout */
} WeightMatrix;

/* False where the node's weight is not `float ~ q`, or does not fit the data that was seen. */
bool weight_matrix(const Node *n, const MacData *data, Diags *d, WeightMatrix *w);

/* Which element of the tensor stands for a channel's term. */
static inline size_t weight_at(const WeightMatrix *w, size_t channel, size_t term) {
    return (term / w->inner * w->axis + channel) * w->inner + term % w->inner;
}

/* x rounded as element `at` of the weights would be, as a real number. */
float weight_rounded(const WeightMatrix *w, size_t at, double x);

/* What the sums of `channel` gain on average from numbers `by` in place of the weights, and rounded
 * in place of real data. */
double weight_mean_error(const WeightMatrix *w, const MacData *data, size_t channel,
                         const float *by);

#endif
