/* How sums become integers of the result's grid (-requant): multipliers, and the instance of a
 * kernel that rounds with them. What the rounding asked for cannot do is reported at the node. */
#ifndef QXC_IR_OPS_ROUNDING_H
#define QXC_IR_OPS_ROUNDING_H

#include "ir/ops/op.h"

/* What a sum is multiplied with: scales of the operands over that of the result. */
typedef struct Multiplier {
    float rounded; /* in float32, in the order in which onnxruntime computes it */
    double real;   /* the same of the float32 scales in double */
} Multiplier;

/* m = c * 2^k as the kernels of this rounding take it. For ROUND_SHIFT an error at the node, and
 * some power of two, where m is none. */
void bind_multiplier(Binder *b, const Node *n, SumRounding r, Multiplier m, int32_t *c, int32_t *k);
/* Tables of `count` of them. ROUND_SHIFT needs no multipliers: *mult is *shift. */
void bind_multipliers(Binder *b, const Node *n, SumRounding r, const Multiplier *m, size_t count,
                      int *mult, int *shift);
/* The rounding for averages: they divide by counts, which no shift does, and stay exact then. */
SumRounding bind_average_rounding(const Binder *b);
/* bind_call of the instance of `kernel` that rounds like this. */
bool bind_rounded(Binder *b, const Node *n, SumRounding r, const char *kernel, const void *params,
                  size_t params_size, int n_args, const int *args);

#endif
