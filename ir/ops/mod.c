/* Mod. 13 added bfloat16, 28 floats with fmod=0. With that the result has the sign of the divisor;
 * with fmod=1 that of the dividend, as C has it. */
#include "ir/ops/bind.h"

typedef struct ModAttrs {
    int64_t fmod;
} ModAttrs;

static const AttrSpec attrs[] = {
    A_FLAG(ModAttrs, fmod, 0),
    A_END,
};

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ModAttrs *a = c->attrs;
    if (bind_any_quant(n))
        return bind_unsupported(b, n, "an operand is quantized");
    return bind_binary(
        b, n, a->fmod ? "fmod" : "mod", bind_elem(n->out[0]),
        bind_broadcast(n->in[0]->type, n->in[1]->type, n->out[0]->type),
        (int[]){bind_value(b, n->in[0]), bind_value(b, n->in[1]), bind_value(b, n->out[0])});
}

const OpDef op_Mod = {
    .domain = "",
    .name = "Mod",
    .attrs_size = sizeof(ModAttrs),
    .attrs = attrs,
    .infer = op_broadcast,
    .bind = bind,
};
