#include "passes/recipe.h"

#include "passes/edit.h"

static const struct {
    const char *name;
    Recipe recipe;
} recipes[] = {
    {"QDQ_OP_FP32_BIAS", RECIPE_FP32_BIAS},
    {"QDQ_OP_INT32_BIAS", RECIPE_INT32_BIAS},
    {"QDQ_OP_FP32_BIAS_QDQ", RECIPE_FP32_BIAS_QDQ},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

static Recipe find(Str name) {
    for (size_t i = 0; name.s && i < N_RECIPES; i++)
        if (str_is(name, recipes[i].name))
            return recipes[i].recipe;
    return RECIPE_NONE;
}

bool recipe_check(Str name, Loc loc, const char *where, Diags *d) {
    const char *names[N_RECIPES];
    if (!name.s || find(name) != RECIPE_NONE)
        return true;
    for (size_t i = 0; i < N_RECIPES; i++)
        names[i] = recipes[i].name;
    diag_error(d, loc, "%sthere is no recipe '%s', but %s, %s and %s", where, diag_name(d, name),
               names[0], names[1], names[2]);
    diag_did_you_mean(d, loc, name, names, N_RECIPES);
    return false;
}

Recipe recipe_of(const PassContext *c) {
    return find(c->scheme.whole[SCHEME_RECIPE].text);
}

bool recipe_takes(const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    return r && r->kind == QUANT_MAC && !r->mac.bias && n->n_in > (size_t)r->mac.weight &&
           value_is_const(n->in[r->mac.weight]) && n->n_out == 1 && n->out[0];
}

Node *recipe_bias_of(const Uses *uses, const Node *n) {
    const Use *use;
    if (n->n_out != 1 || !n->out[0] || uses_of(uses, n->out[0], &use) != 1 || !use[0].node ||
        use[0].node->graph != n->graph || !use[0].node->def || !use[0].node->def->quant.adds ||
        use[0].node->n_in != 2)
        return NULL;
    return edit_float_const(use[0].node->in[1 - use[0].index]) ? use[0].node : NULL;
}
