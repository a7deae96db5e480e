/* What a node is and does to quantized values: Q and DQ in our form, movers, integer products. */
#include "passes/dynamic_form.h"
#include "passes/quant_build.h"

bool is_typed_quantize(const Node *n) {
    return n->n_in == 1 && node_conversion(n) == CONVERT_QUANTIZE;
}
bool is_typed_dequantize(const Node *n) {
    return n->n_in == 1 && node_conversion(n) == CONVERT_DEQUANTIZE;
}

static bool is_integers(const Value *v) {
    return !v->type.quant || quant_is_integers(v->type.quant);
}

bool is_own_quantize(const Node *n) {
    return is_typed_quantize(n) && is_integers(n->out[0]);
}
bool is_own_dequantize(const Node *n) {
    return is_typed_dequantize(n) && is_integers(n->in[0]);
}
bool is_requantize(const Node *n) {
    return node_conversion(n) == CONVERT_REQUANTIZE;
}
bool is_reinterpret(const Node *n) {
    return node_conversion(n) == CONVERT_REINTERPRET;
}

size_t fill_operand(const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    return n->def && n->def->quant.move.fill && n->def->quant.move.fills(&c)
               ? n->def->quant.move.fill
               : 0;
}

bool keeps_integers(const Node *n) {
    OpCtx c = op_ctx(n, NULL);
    const QuantRule *q = n->def ? &n->def->quant : NULL;
    bool kind = q && (q->kind == QUANT_MOVE || q->kind == QUANT_ORDER || q->kind == QUANT_JOIN ||
                      q->kind == QUANT_CLAMP);
    return kind && (q->move.fill || !q->integer_refusal || !q->integer_refusal(&c, NULL));
}

void drop_idle_fill(Node *n) {
    size_t i = n->def ? n->def->quant.move.fill : 0;
    if (!i || fill_operand(n) || !node_input(n, i))
        return;
    n->in[i] = NULL;
    while (n->n_in && !n->in[n->n_in - 1])
        n->n_in--;
}

bool is_integer_product(const Node *n) {
    return node_is(n, "MatMulInteger") || node_is(n, "ConvInteger") ||
           node_is_in(n, "com.microsoft", "MatMulNBits") ||
           node_is_in(n, "com.microsoft", "GatherBlockQuantized") ||
           node_is_in(n, "com.microsoft", "MatMulIntegerToFloat") ||
           node_is_in(n, "com.microsoft", "DynamicQuantizeMatMul") || form_find(n);
}

void set_operand(Node *n, size_t i, Value *v) {
    while (n->n_in <= i)
        node_add_input(n, NULL);
    n->in[i] = v;
}

int rule_single_data(const Node *n) {
    int found = -1;
    for (size_t i = 0; n->def && i < n->n_in; i++) {
        if (!n->in[i] || !quant_rule_is_data(&n->def->quant, i))
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}
bool leaves_range(const Node *n) {
    return !node_int(n, "saturate", 1) && node_conversion(n) == CONVERT_QUANTIZE &&
           elem_is_float(n->out[0]->type.elem);
}

bool is_nbits_block(int64_t length) {
    return length >= 16 && (length & (length - 1)) == 0;
}
