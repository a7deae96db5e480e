/* Operators without a row: onnxruntime's products of integers that have scales, and QONNX's
 * rounding to a grid. See infer.h. */
#include "ir/ops/infer.h"

extern const OpDef op_MatMul;

/* A product of operands 0 and 1, in the floats of the scale behind them. */
static void as_product(OpCtx *c) {
    ElemType scale = op_type(c, 2).elem;
    c->n_in = c->n_in < 2 ? c->n_in : 2;
    if (c->n_in == 2 && op_MatMul.infer(c) && c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = scale;
}

/* Numbers in the place of numbers. */
static void as_operand(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.kind == TYPE_TENSOR)
        c->out[0] = type_tensor(type_real_elem(x), x.rank, x.dims);
}

typedef struct TakenApart {
    const char *domain, *op;
    void (*infer)(OpCtx *c);
} TakenApart;

static const TakenApart table[] = {
    {"com.microsoft", "MatMulIntegerToFloat", as_product},
    {"com.microsoft", "DynamicQuantizeMatMul", as_product},
};

void infer_taken_apart(const Infer *s, OpCtx *c) {
    Diags *d = c->d;
    c->d = s->mute;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (node_is_in(c->node, table[i].domain, table[i].op) && c->node->n_out)
            table[i].infer(c);
    if (node_is_qonnx(c->node) && c->node->n_out)
        as_operand(c);
    c->d = d;
}
