/* Which values take the parameters of which, so that nothing has to be requantized between them: a
 * data mover's result those of its operand, the operand of a Relu or Clip those of the result, what
 * Concat or Where joins those of the result. Parameters that the file or a rule gives to one of
 * them serve all; where they cannot, a warning tells of the requantization. */
#ifndef QXC_PASSES_QUANTIZE_SHARING_H
#define QXC_PASSES_QUANTIZE_SHARING_H

#include "passes/pass.h"

/* By node and value id; `root` is filled by sharing_new and sharing_find. Memory is the module's.
 */
typedef struct Sharing {
    const PassContext *c;
    const Uses *uses;
    const bool *integer; /* nodes that compute on integers */
    const bool *wanted;  /* values that get parameters */
    const bool *sum;     /* nodes whose result the recipe QDQ_OP_FP32_BIAS_QDQ quantizes */
    Value **root;        /* whose parameters a value takes; itself: its own */
} Sharing;

Sharing sharing_new(Module *m, const PassContext *c, const Uses *uses, const bool *integer,
                    const bool *wanted, const bool *sum);
/* Once it is known which nodes are integer and which values are wanted. */
void sharing_find(Sharing *s, Module *m);
/* The value whose parameters `v` takes: itself where it has its own. */
Value *sharing_root(const Sharing *s, Value *v);

/* Whether it is a Relu of such a sum: it computes in float on what the sum was rounded to, and
 * whoever quantizes its result does so anew. */
bool clamps_sum(const Sharing *s, const Node *n);

/* Whether a node keeps the parameters of its operand: moves, keeps order, or cuts. */
bool is_follower(const Node *n);

#endif
