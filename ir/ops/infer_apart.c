/* Operators without a row: onnxruntime's products of integers that have scales, products that have
 * an activation, and operators with channels last, and QONNX's rounding to a grid. See infer.h. */
#include "ir/ops/infer.h"

extern const OpDef op_Conv, op_Gemm, op_MatMul, op_MaxPool;

/* A product of operands 0 and 1, in the floats of the scale behind them. */
static void as_product(OpCtx *c) {
    ElemType scale = op_type(c, 2).elem;
    c->n_in = c->n_in < 2 ? c->n_in : 2;
    if (c->n_in == 2 && op_MatMul.infer(c) && c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = scale;
}

/* What ONNX's operator makes of the first operands, by the attributes that it has, too. */
static void as_operator(OpCtx *c, const OpDef *op, size_t n_in) {
    c->attrs = attrs_as(c->node, op, c->d);
    c->n_in = c->n_in < n_in ? c->n_in : n_in;
    if (c->attrs && (!op->verify || op->verify(c)))
        op->infer(c);
}

static void as_conv(OpCtx *c) {
    as_operator(c, &op_Conv, 3);
}

static void as_gemm(OpCtx *c) {
    as_operator(c, &op_Gemm, 3);
}

/* [N, C, ...] of [N, ..., C] for `front`, else the other way. */
static Type turned(Arena *a, Type t, bool front) {
    if (t.kind != TYPE_TENSOR || t.rank < 3)
        return t;
    Dim *dims = NEW_ARRAY(a, Dim, (size_t)t.rank);
    dims[0] = t.dims[0];
    for (int i = 1; i < t.rank; i++)
        dims[i] = front ? t.dims[i == 1 ? t.rank - 1 : i - 1] : t.dims[i == t.rank - 1 ? 1 : i + 1];
    return type_tensor(t.elem, t.rank, dims);
}

/* `w`: the weights, NULL where the operator has none. */
static void as_channels_last(OpCtx *c, const OpDef *op, Value *w) {
    if (!c->n_in || !c->in[0])
        return;
    Value x = *c->in[0];
    Value *in[] = {&x, w};
    x.type = turned(c->arena, x.type, true);
    c->in = in;
    as_operator(c, op, w ? 2 : 1);
    c->out[0] = turned(c->arena, c->out[0], false);
}

static void as_max_pool(OpCtx *c) {
    as_channels_last(c, &op_MaxPool, NULL);
}

/* com.microsoft's, which is ONNX's but for channels_last. Its result has the type of the zero point
 * behind the scale. */
static void as_qlinear_conv(OpCtx *c) {
    enum { W = 3, Y_ZP = 7 };
    Type zp = op_type(c, Y_ZP);
    Value *w = c->n_in > W ? c->in[W] : NULL;
    if (!w || zp.kind != TYPE_TENSOR)
        return;
    if (node_int(c->node, "channels_last", 0)) {
        as_channels_last(c, &op_Conv, w);
    } else {
        Value *in[] = {c->in[0], w};
        c->in = in;
        as_operator(c, &op_Conv, 2);
    }
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = zp.elem;
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
    {"com.microsoft", "FusedConv", as_conv},
    {"com.microsoft", "FusedGemm", as_gemm},
    {"com.microsoft", "NhwcMaxPool", as_max_pool},
    {"com.microsoft", "QLinearConv", as_qlinear_conv},
};

void infer_taken_apart(const Infer *s, OpCtx *c) {
    /* With operands and attributes of what the node stands for; results are shared. */
    OpCtx own = *c;
    own.d = s->mute;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (node_is_in(c->node, table[i].domain, table[i].op) && c->node->n_out)
            table[i].infer(&own);
    if (node_is_qonnx(c->node) && c->node->n_out)
        as_operand(&own);
}
