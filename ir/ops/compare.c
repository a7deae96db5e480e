/* Comparisons (Equal, Greater, GreaterOrEqual, Less, LessOrEqual) and logic (And, Or, Xor, Not).
 * From opset 7 operands broadcast; later ones added types. A bool is a byte, 0 or 1. */
#include "ir/ops/bind.h"

static bool infer(OpCtx *c) {
    if (!op_broadcast(c))
        return false;
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = ELEM_BOOL;
    return true;
}

BEGINS_WITH_BROADCAST(qk_compare_params);
BEGINS_WITH_BROADCAST(qk_logic_params);

static bool bind_compare(Binder *b, const Node *n, int32_t less, int32_t equal, int32_t greater) {
    ElemType e = bind_elem(n->in[0]);
    Broadcast s = bind_broadcast(n->in[0]->type, n->in[1]->type, n->out[0]->type);
    qk_compare_params p = {.less = less, .equal = equal, .greater = greater};
    memcpy(&p, &s, sizeof s);
    if (op_quant(n->in[0]) || op_quant(n->in[1]))
        return bind_unsupported(b, n, "an operand is quantized");
    return bind_call(
        b, n, bind_kernel(b, "compare", 1, &e), &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[0]), bind_value(b, n->in[1]), bind_value(b, n->out[0])});
}

#define COMPARE(op, fn, less, equal, greater)                                                      \
    static bool fn(Binder *b, const Node *n, const OpCtx *c) {                                     \
        (void)c;                                                                                   \
        return bind_compare(b, n, less, equal, greater);                                           \
    }                                                                                              \
    const OpDef op_##op = {                                                                        \
        .domain = "", .name = #op, .infer = infer, .slices = op_slices_each, .bind = fn};

COMPARE(Equal, equal_bind, 0, 1, 0)
COMPARE(Greater, greater_bind, 0, 0, 1)
COMPARE(GreaterOrEqual, greater_or_equal_bind, 0, 1, 1)
COMPARE(Less, less_bind, 1, 0, 0)
COMPARE(LessOrEqual, less_or_equal_bind, 1, 1, 0)

/* ---- logic ---- */

/* Bit 2a + b of the table is the result for a and b. */
static bool bind_logic(Binder *b, const Node *n, const Value *second, int32_t table) {
    ElemType e = ELEM_UINT8;
    Broadcast s = bind_broadcast(n->in[0]->type, second->type, n->out[0]->type);
    qk_logic_params p = {.table = table};
    memcpy(&p, &s, sizeof s);
    return bind_call(
        b, n, bind_kernel(b, "logic", 1, &e), &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[0]), bind_value(b, second), bind_value(b, n->out[0])});
}

#define LOGIC(op, fn, second, table)                                                               \
    static bool fn(Binder *b, const Node *n, const OpCtx *c) {                                     \
        (void)c;                                                                                   \
        return bind_logic(b, n, n->in[second], table);                                             \
    }                                                                                              \
    const OpDef op_##op = {                                                                        \
        .domain = "", .name = #op, .infer = infer, .slices = op_slices_each, .bind = fn};

LOGIC(And, and_bind, 1, 8)
LOGIC(Or, or_bind, 1, 14)
LOGIC(Xor, xor_bind, 1, 6)
LOGIC(Not, not_bind, 0, 1)
