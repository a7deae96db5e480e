/* Recipes: in which arithmetic the bias of a fully connected layer is added. In ONNX such a layer
 * is MatMul by constant weights and, where it has a bias, Add of a constant; what was a Gemm
 * becomes these first (gemm-to-matmul). Pure questions; recipe_check alone reports. */
#ifndef QXC_PASSES_RECIPE_H
#define QXC_PASSES_RECIPE_H

#include "passes/pass.h"

typedef enum Recipe {
    RECIPE_NONE,          /* both integer, each with a result of its own */
    RECIPE_FP32_BIAS,     /* MatMul from integers to float, the bias is added in float */
    RECIPE_FP32_BIAS_QDQ, /* the same, and the sum is quantized */
    RECIPE_INT32_BIAS,    /* the bias is added to the accumulator, the sum is float */
} Recipe;

/* Whether there is a recipe of this name (STR_NONE: none asked for); reports at `loc` if not,
 * behind `where` ("-recipe: " or ""). */
bool recipe_check(Str name, Loc loc, const char *where, Diags *d);
/* The scheme's recipe. */
Recipe recipe_of(const PassContext *c);

/* A product of data and constant weights that has no operand for a bias: MatMul. */
bool recipe_takes(const Node *n);
/* The Add that adds a constant to what this node yields, where nothing else reads that; else NULL.
 */
Node *recipe_bias_of(const Uses *uses, const Node *n);

#endif
