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
    Map *steps;  /* quantized values whose scale is a step of plain integers: themselves */
    Node **left; /* nodes that may be of no use any more */
    size_t n_left, cap_left;
} Scaling;

/* The integers of x quantized to q, by a QuantizeLinear before n. */
Value *scaling_quantize(Scaling *s, Node *n, Value *x, const Quant *q);
/* n becomes the DequantizeLinear of these integers. */
void scaling_dequantize(Scaling *s, Node *n, Value *ints);
/* n goes at the end of the pass where nobody reads it then. */
void scaling_leave(Scaling *s, Node *n);
/* Of a chain that multiplied by 1/s: it is told that the type divides by s. */
void scaling_by_reciprocal(const Scaling *s, const Node *n);
/* The constant that `n` (op is Div or Mul) divides or multiplies *x by, where it is positive and of
 * no higher rank than *x. NULL where it is no such node; *x is as it was then. */
const Tensor *scaling_factor(const Node *n, const char *op, Value **x);
/* Whether n is op(x, number), by one constant; op is Add or Sub. */
bool scaling_adds(const Node *n, const char *op, double number);
/* What moves its first operand alone, and puts nothing but 0 among it (scaling_behind.c). */
bool scaling_moves(const Node *n);
bool scaling_is_sum(const Node *n);     /* Add or Sub */
bool scaling_is_average(const Node *n); /* of windows, or of all positions */
/* Does a positive factor behind this node do the same before it? */
bool scaling_commutes(const Node *n);
/* The same, and integers stay integers. */
bool scaling_keeps(const Node *n);
/* Calls `each` of all values of a quantized type whose numbers v holds as floats, through joins and
 * nodes that `through` lets pass. False where v holds anything else, or where `each` says so. */
typedef bool ScalingThrough(const Node *n);
typedef bool ScalingEach(void *ctx, Value *ints);
bool scaling_behind(const Value *v, ScalingThrough *through, ScalingEach *each, void *ctx);
/* The one quantization of plain integers, with zero point 0, that all of v has: of scale 1, or of a
 * step that quantizers were given (s->steps). NULL: none. */
const Quant *scaling_integers(const Scaling *s, const Value *v, ScalingThrough *through);
/* Conv, Gemm or MatMul whose weights and biases are constant integers that stand as floats. */
bool scaling_is_product(const Node *n);
/* Such a product whose operand is integers of one step, whatever it is: its weights take it in. */
bool scaling_takes_steps(const Scaling *s, const Node *n);
/* The same, and its weights make up for the step of what `q`, behind it, yields. */
bool scaling_makes_up_for(const Scaling *s, const Node *n, const Node *q);
/* Shifts of products round down: where their biases can make up for it, they round to the nearest;
 * others where they add a half. What they multiply by has this above a power of two then
 * (scaling_floor.c). */
#define SCALING_TIES_UP (1 + 0x1p-21F)
/* The same of averages, at most: floats that add up a window are off by more. */
#define SCALING_MEAN_UP (1 + 0x1p-19F)
/* What to multiply `average`, of integers from -most to most, by so that ties go away from 0 and
 * nothing else does; 1 where its window is too large for that. */
float scaling_mean_up(const Node *average, double most);
void scaling_floors(Scaling *s);
/* A Cast to integers that hold the range, and back, goes; one to integers that leave the graph
 * becomes a type (scaling_casts.c). */
void scaling_skip_casts(Scaling *s);
void scaling_type_outputs(Scaling *s);
/* Types of scale 1 get the scales that make their numbers real (scaling_steps.c). */
void scaling_steps(Scaling *s);
/* v, integers of q as floats, is read here as if its step were 1; `made` has what was made of each
 * v (scaling_numbers.c). */
void scaling_as_numbers(Scaling *s, Map *made, Value *v, const Use *use, const Quant *q);
/* What k, rounded to a float, is the reciprocal of (scaling_numbers.c). */
double scaling_reciprocal(const Scaling *s, float k);
/* Products of integers that stand as floats compute on types; a Mul behind them becomes the scale
 * of their weights. */
void scaling_products(Scaling *s);

#endif
