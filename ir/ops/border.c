/* qxc::CallBegin and qxc::CallEnd: the borders of a call whose function stands in its place for as
 * long as the model is decided on (passes/enclose.h). Each passes its operands on, and nothing is
 * folded or moved across it; CallBegin leaves out the results that nobody needs. Only texts that
 * stand between passes (-print-after) have them; read from one, they no longer know their call. */
#include "ir/ops/bind.h"

static bool verify(const OpCtx *c) {
    for (size_t i = 0; i < c->n_out; i++)
        if (c->node->out[i] && !op_in(c, i))
            return op_error_out(c, i, "result %zu has no operand", i);
    return true;
}

static bool infer(OpCtx *c) {
    for (size_t i = 0; i < c->n_out; i++) {
        Type x = op_type(c, i);
        c->out[i] = x.kind == TYPE_TENSOR ? type_tensor(type_real_elem(x), x.rank, x.dims) : x;
    }
    return true;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    return i == result ? axis : SLICES_APART;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    bool ok = true;
    for (size_t i = 0; ok && i < c->n_out; i++)
        if (n->out[i])
            ok = bind_alias(b, n, n->out[i], n->in[i]);
    return ok;
}

#define BORDER(which)                                                                              \
    const OpDef op_##which = {.domain = "qxc",                                                     \
                              .name = #which,                                                      \
                              .inner = true,                                                       \
                              .verify = verify,                                                    \
                              .infer = infer,                                                      \
                              .slices = slices,                                                    \
                              .bind = bind}
BORDER(CallBegin);
BORDER(CallEnd);
