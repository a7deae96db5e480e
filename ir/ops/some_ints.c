/* Lists of integers of which some are known before anything runs: a shape that is put together of a
 * number from the data and constants. */
#include "ir/ops/op.h"

enum { MOST_STEPS = 32 }; /* as chains of nodes may be long */

/* Where element `*at` of the value comes from as it is; NULL where that is not known. */
static const Value *source(const Value *v, int64_t *at) {
    const Node *n = v->kind == VALUE_NODE ? v->def : NULL;
    if (!n || !n->def || n->faulty || v->index || !n->n_in)
        return NULL;
    if (n->def->flat)
        return n->in[0];
    Type few[OP_FEW];
    OpCtx c = op_ctx_few(n, few, NULL);
    return n->def->element ? n->def->element(&c, at) : NULL;
}

static bool element(const Value *v, int64_t at, int64_t *out) {
    for (int i = 0; v && i < MOST_STEPS; i++) {
        const Tensor *t = value_data(v);
        if (t) {
            bool there = elem_is_int(t->elem) && t->data && (uint64_t)at < t->count;
            if (there)
                *out = tensor_int(t, (size_t)at);
            return there;
        }
        v = source(v, &at);
    }
    return false;
}

bool op_some_ints(const OpCtx *c, size_t i, SomeInts *out) {
    const Value *v = op_in(c, i);
    size_t n;
    if (!v || v->type.kind != TYPE_TENSOR || v->type.rank > 1 || !type_count(v->type, &n) ||
        n > 2 * MAX_RANK)
        return false;
    int64_t *list = NEW_ARRAY(c->arena, int64_t, n + 1);
    bool *known = NEW_ARRAY(c->arena, bool, n + 1);
    for (size_t k = 0; k < n; k++)
        known[k] = element(v, (int64_t)k, &list[k]);
    *out = (SomeInts){n, list, known};
    return true;
}

SomeInts op_known_ints(const OpCtx *c, Ints list) {
    bool *known = NEW_ARRAY(c->arena, bool, list.n + 1);
    for (size_t k = 0; k < list.n; k++)
        known[k] = true;
    return (SomeInts){list.n, list.v, known};
}

bool op_all_known(SomeInts list) {
    for (size_t k = 0; k < list.n; k++)
        if (!list.known[k])
            return false;
    return true;
}
