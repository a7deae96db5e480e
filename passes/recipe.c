#include "passes/recipe.h"

#include "passes/edit.h"

Recipe recipe_parse(const PassContext *c) {
    static const char *const names[] = {"QDQ_OP_FP32_BIAS", "QDQ_OP_FP32_BIAS_QDQ",
                                        "QDQ_OP_INT32_BIAS"};
    static const Recipe recipes[] = {RECIPE_FP32_BIAS, RECIPE_FP32_BIAS_QDQ, RECIPE_INT32_BIAS};
    Str r = c->scheme.recipe;
    if (!r.s)
        return RECIPE_NONE;
    for (size_t i = 0; i < 3; i++)
        if (str_is(r, names[i]) && recipes[i] != RECIPE_INT32_BIAS)
            return recipes[i];
    if (str_is(r, names[2])) {
        diag_error(
            c->d, c->scheme.recipe_loc,
            "a MatMul whose bias is added to the accumulator is not supported yet: the other "
            "recipes are, and Gemm, which does so without one");
        return RECIPE_BAD;
    }
    diag_error(c->d, c->scheme.recipe_loc, "there is no recipe '%s'", diag_name(c->d, r));
    diag_did_you_mean(c->d, c->scheme.recipe_loc, r, names, 3);
    return RECIPE_BAD;
}

Node *recipe_bias_of(const Uses *uses, const Node *matmul) {
    const Use *use;
    if (!node_is(matmul, "MatMul") || matmul->n_out != 1 || !matmul->out[0] ||
        uses_of(uses, matmul->out[0], &use) != 1 || !use[0].node || !node_is(use[0].node, "Add"))
        return NULL;
    return edit_float_const(use[0].node->in[1 - use[0].index]) ? use[0].node : NULL;
}
