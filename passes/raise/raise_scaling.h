/* Quantizers spelled with the operators of floats: scale, Round, Clip (Aidge, LSQ). Numbers stay
 * float and are integers, of which no type speaks. Memory is the module's; nothing fails. */
#ifndef QXC_PASSES_RAISE_RAISE_SCALING_H
#define QXC_PASSES_RAISE_RAISE_SCALING_H

#include "passes/quant_build.h"

/* The second of Round and Clip, in any order, with integers of at most 32 bits around 0 as bounds.
 */
bool is_scaling(const Node *n);

typedef struct Scaling {
    QuantBuild b;
    PassContext *c;
    Module *m;
    Uses *uses;  /* as of the start of the step */
    Node **left; /* nodes that may be of no use any more */
    size_t n_left, cap_left;
} Scaling;

/* The integers of x quantized to q, by a QuantizeLinear before n. */
Value *scaling_quantize(Scaling *s, Node *n, Value *x, const Quant *q);
/* n becomes the DequantizeLinear of these integers. */
void scaling_dequantize(Scaling *s, Node *n, Value *ints);
/* n goes at the end of the pass where nobody reads it then. */
void scaling_leave(Scaling *s, Node *n);
/* The constant that `n` (op is Div or Mul) divides or multiplies *x by, where it is positive. NULL
 * where it is no such node. */
const Tensor *scaling_factor(const Node *n, const char *op, Value **x);
/* Products of integers that stand as floats compute on types; a Mul behind them becomes the scale
 * of their weights. */
void scaling_products(Scaling *s);

#endif
