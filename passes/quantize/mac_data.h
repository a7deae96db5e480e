/* What the sums of a Conv, Gemm or MatMul go over when a model runs on calibration data: for each
 * group of output channels the mean of the numbers that meet a channel's weights, and how they vary
 * together. Rounding of weights and correction of biases read it.
 *
 * The model runs in float, so that each node sees what it was made for and not the errors of those
 * before it: what its operand's `~` loses is looked at with it. At most POSITIONS_PER_SAMPLE sums
 * of a node are looked at in a sample, evenly spread, and memory is bounded: nodes are taken in as
 * many runs as that needs. Sums over NaN or infinity are left out, with a warning. Fails with the
 * diagnostics of the program or the data. */
#ifndef QXC_PASSES_QUANTIZE_MAC_DATA_H
#define QXC_PASSES_QUANTIZE_MAC_DATA_H

#include "passes/pass.h"

typedef struct MacData {
    const Node *node;
    size_t groups, terms;
    double rows;      /* sums that were seen, of each group */
    double *real;     /* [groups, terms]: means of the numbers in the float model */
    double *mean;     /* the same once they have been rounded as their type says */
    double *gram;     /* [groups, terms, terms], lower triangle, of rounded numbers: sum of
                         (x - mean)(x - mean)^T; NULL where not asked for, or too large */
    double *cross;    /* [groups, terms, terms]: sum of (x - mean)(e - mean of e)^T, where e is what
                         the float model's number has more than x; NULL: nothing but rounding of x
                         stands between them */
    size_t n_held;    /* sums of each group that are in none of these, to judge by: */
    float *held;      /* [n_held, groups, terms]: rounded numbers, */
    float *held_real; /* and those of the float model */
} MacData;

/* Calls `fn` for each node that multiplies data by a constant float weight and was computed; it may
 * give the node other constants, which stand there when mac_data returns. `data` is gone when `fn`
 * returns. `gram` says whether how the numbers of a node vary is of interest; NULL: of none. `pass`
 * is named in warnings. */
typedef void MacDataFn(void *ctx, Node *n, const MacData *data);
typedef bool MacGramFn(void *ctx, const Node *n);
bool mac_data(Module *m, PassContext *c, const char *pass, MacGramFn *gram, MacDataFn *fn,
              void *ctx);

#endif
