/* The weights of a node as one matrix, what quantizing them does, and a bias that makes up for it:
 * shared by the passes that mend a model with data. Memory is the module's; nothing fails. */
#ifndef QXC_PASSES_QUANTIZE_WEIGHT_ERROR_H
#define QXC_PASSES_QUANTIZE_WEIGHT_ERROR_H

#include "passes/quantize/mac_data.h"

typedef struct WeightMatrix {
    const Tensor *data;
    const Quant *quant;
    size_t channels, per_group; /* output channels; of one group */
    size_t terms;
    size_t inner, axis; /* strides of the layout */
    int dim;            /* the dimension that channels are */
} WeightMatrix;

/* False where the node's weight is not `float ~ q`, or does not fit the data that was seen. */
bool weight_matrix(const Node *n, const MacData *data, Diags *d, WeightMatrix *w);

/* Which element of the tensor stands for a channel's term. */
static inline size_t weight_at(const WeightMatrix *w, size_t channel, size_t term) {
    return (term / w->inner * w->axis + channel) * w->inner + term % w->inner;
}

/* x rounded as element `at` of the weights would be, as a real number. */
float weight_rounded(const WeightMatrix *w, size_t at, double x);

/* Whether so few integers are used that rounding loses much: those of 6 bits and less. */
bool weight_is_few(const Quant *q);

typedef struct NewBias {
    Node *node;
    Value *other; /* that it had or is to have; or NULL: none */
} NewBias;

/* What mends a model: one run of a pass. */
typedef struct Mend {
    PassContext *c;
    UniqueNames *names;
    Uses *uses; /* as it was at the start */
    const char *pass;
    Arena *arena;
    float *rounded; /* of mend_rounded */
    size_t cap;
    NewBias *biases; /* of mend_set_bias */
    size_t n_biases, cap_biases;
} Mend;

Mend mend_new(Module *m, PassContext *c, const char *pass);

/* All weights rounded, for the caller to change; they stand until this is asked of the next. */
float *mend_rounded(Mend *by, const WeightMatrix *w);

/* The bias of a node as numbers, one a channel; NULL where there is no room for one, or where it is
 * to stay as it is. */
double *mend_bias(const Mend *by, const Node *n, const WeightMatrix *w);
/* Takes off it what its sums gain on average from `numbers` in place of the weights, and from
 * rounded in place of real data. */
void mend_set_bias(Mend *by, Node *n, const WeightMatrix *w, const MacData *data,
                   const float *numbers, double *bias);
/* Once all nodes have theirs: they stay, and a bias that nobody else reads keeps its name. */
void mend_keep_biases(const Mend *by);
/* Or all nodes get back what they had; and the other way round. */
void mend_swap_biases(Mend *by);

#endif
