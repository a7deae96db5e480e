/* BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift: operations on the bits of integers.
 */
#include "ir/ops/bind.h"

static bool bind_bits(Binder *b, const Node *n, const char *op) {
    return bind_binary(
        b, n, op, bind_elem(n->out[0]),
        bind_broadcast(n->in[0]->type, n->in[1]->type, n->out[0]->type),
        (int[]){bind_value(b, n->in[0]), bind_value(b, n->in[1]), bind_value(b, n->out[0])});
}

#define BITWISE(op, kernel)                                                                        \
    static bool kernel##_bind(Binder *b, const Node *n, const OpCtx *c) {                          \
        (void)c;                                                                                   \
        return bind_bits(b, n, #kernel);                                                           \
    }                                                                                              \
    const OpDef op_##op = {.domain = "", .name = #op, .infer = op_broadcast, .bind = kernel##_bind};

BITWISE(BitwiseAnd, and)
BITWISE(BitwiseOr, or)
BITWISE(BitwiseXor, xor)

static bool not_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    ElemType e = bind_elem(n->out[0]);
    qk_unary_params p = {.n = bind_count(n->in[0])};
    return bind_first(b, n, bind_kernel(b, "unary_not", 1, &e), &p, sizeof p);
}

const OpDef op_BitwiseNot = {.domain = "",
                             .name = "BitwiseNot",
                             .infer = op_same_type,
                             .slices = op_slices_each,
                             .bind = not_bind};

/* ---- BitShift ---- */

typedef struct ShiftAttrs {
    Str direction;
} ShiftAttrs;

static const AttrSpec attrs[] = {
    ATTR(ShiftAttrs, direction, "direction", ATTR_STRING, .required = true),
    A_END,
};

static bool shift_verify(const OpCtx *c) {
    const ShiftAttrs *a = c->attrs;
    return str_is(a->direction, "LEFT") || str_is(a->direction, "RIGHT") ||
           op_error_attr(c, "direction", "direction must be LEFT or RIGHT");
}

static bool shift_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ShiftAttrs *a = c->attrs;
    return bind_bits(b, n, str_is(a->direction, "LEFT") ? "left" : "right");
}

const OpDef op_BitShift = {
    .domain = "",
    .name = "BitShift",
    .attrs_size = sizeof(ShiftAttrs),
    .attrs = attrs,
    .verify = shift_verify,
    .infer = op_broadcast,
    .bind = shift_bind,
};
