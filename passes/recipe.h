/* Recipes for MatMul + Add with a constant, which is what a fully connected layer becomes in ONNX:
 * in which arithmetic the bias is added. */
#ifndef QXC_PASSES_RECIPE_H
#define QXC_PASSES_RECIPE_H

#include "passes/pass.h"

typedef enum Recipe {
    RECIPE_NONE,          /* both integer, each with a result of its own */
    RECIPE_FP32_BIAS,     /* MatMul from integers to float, the bias is added in float */
    RECIPE_FP32_BIAS_QDQ, /* the same, and the sum is quantized */
    RECIPE_INT32_BIAS,    /* the bias is added to the accumulator, the sum is float */
    RECIPE_BAD,           /* reported */
} Recipe;

/* What the scheme's recipe is; RECIPE_BAD after a diagnostic. */
Recipe recipe_parse(const PassContext *c);

/* The Add that adds a constant to what this MatMul yields, where nothing else reads that; else
 * NULL. */
Node *recipe_bias_of(const Uses *uses, const Node *matmul);

#endif
