/* Which products within an operator can be taken apart. */
#include "passes/split_products.h"

bool node_is_attention(const Node *n) {
    return node_is_in(n, "com.microsoft", "Attention");
}

bool holds_products(const Node *n) {
    return node_is_attention(n) || node_is_in(n, "com.microsoft", "FusedMatMul");
}

static Type type_of(const Node *n, size_t i) {
    const Value *v = node_input(n, i);
    return v && v->type.kind == TYPE_TENSOR ? v->type : (Type){.rank = -1};
}

static const char *matmul_refusal(const Node *n) {
    return type_of(n, 0).rank < 2 || type_of(n, 1).rank < 2 ? "the rank of an operand is not known"
                                                            : NULL;
}

Mask attention_mask(const Node *n) {
    Type x = type_of(n, ATTENTION_INPUT), mask = type_of(n, ATTENTION_MASK);
    if (!node_input(n, ATTENTION_MASK))
        return MASK_NONE;
    if (mask.rank == 1 && dim_equal(mask.dims[0], x.dims[0]))
        return MASK_ENDS;
    if (mask.rank == 1 && mask.dims[0].value >= 0 && mask.dims[0].value == 2 * x.dims[0].value)
        return MASK_SPANS;
    bool steps = (mask.rank == 2 || mask.rank == 3) && dim_equal(mask.dims[0], x.dims[0]) &&
                 (mask.dims[mask.rank - 1].value != 1 || x.dims[1].value == 1);
    return !steps ? MASK_OTHER : mask.rank == 2 ? MASK_STEPS : MASK_PAIRS;
}

static const char *attention_refusal(const Node *n) {
    if (node_int(n, "do_rotary", 0))
        return "it has a rotary embedding";
    if (node_input(n, ATTENTION_PAST_LENGTH) || node_int(n, "past_present_share_buffer", 0))
        return "it keeps past and present keys in one buffer";
    if (type_of(n, ATTENTION_INPUT).rank != 3 || type_of(n, ATTENTION_WEIGHTS).rank != 2 ||
        type_of(n, ATTENTION_WEIGHTS).dims[1].value < 0)
        return "the shapes of its operands are not known";
    return attention_mask(n) == MASK_OTHER
               ? node_strf(n, "its mask is %s; it can be int32[B], [2*B], [B,S] or [B,S,S]",
                           type_text(n->graph->module->arena, type_of(n, ATTENTION_MASK)))
               : NULL;
}

const char *split_refusal(const Node *n) {
    return node_is_attention(n) ? attention_refusal(n) : matmul_refusal(n);
}

const char *whole_refusal(const Node *n) {
    const char *why = holds_products(n) ? split_refusal(n) : NULL;
    if (why || !holds_products(n))
        return why;
    return "it multiplies within one operator, which -placement=all takes apart where there are "
           "data";
}
