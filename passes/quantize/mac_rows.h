/* What is added up of the sums of one product while data run: means, and how numbers vary together.
 * For passes/quantize/mac_data.h and what walks from node to node. Tables are the caller's. */
#ifndef QXC_PASSES_QUANTIZE_MAC_ROWS_H
#define QXC_PASSES_QUANTIZE_MAC_ROWS_H

#include "passes/quantize/mac_data.h"

typedef struct MacRows {
    OpCtx op;
    MacSums sums;
    MacData data;
    float *rows;     /* [groups, terms]: one sum of each group */
    float *reals;    /* the same in the float model; NULL: `rows` are that, before rounding */
    double *first;   /* with a gram: the first row of each group, which others are less */
    double *batch;   /* [groups, ROWS_BATCH, terms] of such rows */
    double *away;    /* with data.cross: what the float model's have more */
    size_t in_batch; /* of each group */
    size_t left_out; /* sums of each group over NaN or infinity */
    uint64_t looked; /* positions of those that are looked at in part */
} MacRows;

/* Rows that the gram is told of at once: they stay in the processor's cache. */
enum { ROWS_BATCH = 16 };

/* Whether a node of the main graph or a body multiplies data by a constant float weight, in a form
 * whose sums can be looked at: then `r` says which, and has no tables yet. */
bool mac_rows_of(Node *n, Diags *d, MacRows *r);
/* How many doubles the tables take. `gram`: one is of interest; `apart`: operands come with what
 * they are in the float model, and a gram with `cross`. */
size_t mac_rows_size(const MacRows *r, bool gram, bool apart);
/* Tables of so many doubles, which are 0, and `a` for the rest. */
void mac_rows_begin(MacRows *r, Arena *a, double *tables, bool gram, bool apart);
/* Sums of one sample, `most` at most, evenly spread: `x` is operand 0; `real` is it in the float
 * model where the two come apart, else NULL. */
void mac_rows_add(MacRows *r, const float *x, const float *real, int64_t most);
/* Sets sums of one sample aside in place of that, `most` at most, as long as `room` of them have
 * place; memory is the arena's. */
void mac_rows_hold(MacRows *r, Arena *a, const float *x, const float *real, int64_t most,
                   size_t room);
/* Means of what was summed up. */
void mac_rows_finish(MacRows *r);
/* A warning where sums of any were left out. */
void mac_rows_say_left_out(const PassContext *c, const char *pass, const Node *first, size_t sums,
                           size_t nodes);

#endif
