/* What quantization with parameters computed at run time asks of its reader. See legal.h. */
#include "passes/target/legal.h"

const char *dynamic_refusal(const Uses *u, const Value *v) {
    const Use *use;
    size_t n = uses_of(u, v, &use);
    if (v->type.tilde || !v->def || !is_own_quantize(v->def))
        return "only the result of QuantizeLinear can have them";
    if (v->type.quant->storage != ELEM_UINT8 || v->type.quant->has_range)
        return "ONNX has this for uint8 alone";
    for (size_t i = 0; i < n; i++) {
        const Node *to = use[i].node;
        if (to && to->def && to->def->dynamic.op && (int)use[i].index == to->def->dynamic.data)
            continue;
        if (!to || !to->def || !to->def->quant.mac.takes_dynamic || use[i].index != 0)
            return "only Conv, Gemm, MatMul, LSTM and Attention can read such a value";
        const Value *w = to->in[to->def->quant.mac.weight];
        if (!value_is_const(w) || !type_is_quantized(w->type) || elem_bits(w->type.elem) > 8 ||
            quant_is_blocked(w->type.quant) || w->data->rank < 2)
            return "the weights that it is multiplied with are no constant integers of 8 bits";
        if (op_quant(to->out[0]))
            return "the result of the product has to be float";
        const Value *bias = node_input(to, 2);
        if (bias && !(value_is_const(bias) && bias->data->elem == ELEM_FLOAT))
            return "the bias of the product has to be a float constant";
        if (node_int(to, "transA", 0))
            return "transA of the product is set";
    }
    return NULL;
}
