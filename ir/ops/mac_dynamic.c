/* Products whose input has parameters computed at run time (uint8q<dynamic>), and biases that are
 * added to float results: see mac.h.
 *
 *   y = float(sum (x - xz) (w - wz[c])) * (sx * (alpha * sw[c])) + beta * bias, all in float32
 *
 * as onnxruntime computes MatMulIntegerToFloat and ONNX's MatMulInteger, Cast, Mul, Add. */
#include "ir/ops/mac.h"

bool mac_dynamic_refused(Binder *b, const Node *n, const Value *w) {
    const Quant *x = op_quant(n->in[0]), *q = op_quant(w);
    if (q && q->kind == QUANT_DYNAMIC)
        return !bind_unsupported(b, n, "its weights have parameters computed at run time");
    if (x && x->kind == QUANT_DYNAMIC && !n->def->quant.mac.takes_dynamic)
        return !bind_unsupported(b, n, "its input has parameters computed at run time");
    if (x && x->kind == QUANT_DYNAMIC && bind_dynamic(b, n->in[0]) < 0)
        return !bind_unsupported(b, n, "its input is no result of QuantizeLinear");
    if (!x || x->kind != QUANT_DYNAMIC || (q && !op_quant(n->out[0]) && elem_bits(q->storage) <= 8))
        return false;
    return !bind_unsupported(b, n,
                             "its input has parameters computed at run time: then weights are "
                             "integers of 8 bits or less, and the result is float");
}

/* The products of scales, as the only table. */
static void scales(Binder *b, const Node *n, Mac *m) {
    size_t count = m->m_step ? m->channels : 1;
    int params = bind_dynamic(b, n->in[0]), scale = bind_temp(b, ELEM_FLOAT, count);
    int w = bind_const(b, ELEM_FLOAT, count, m->scale, "scales of the weights");
    Broadcast all_by_one = {.rank = 1, .dim = {(int32_t)count}, .as = {1}};
    m->out_args[m->n_out_args++] = scale;
    bind_binary(b, n, "mul", ELEM_FLOAT, all_by_one, (int[]){w, params, scale});
}

int mac_input(Binder *b, const Node *n, Mac *m) {
    int x = bind_value(b, n->in[0]);
    if (!m->dynamic)
        return x;
    scales(b, n, m);
    int centred = bind_temp(b, ELEM_INT16, (size_t)bind_count(n->in[0]));
    qk_dyncentre_params p = {.n = bind_count(n->in[0])};
    bind_call(b, n, "qk_dyncentre", &p, sizeof p, 3,
              (int[]){x, bind_dynamic(b, n->in[0]), centred});
    return centred;
}

int mac_output(Binder *b, const Node *n, const Mac *m) {
    const Value *y = n->out[0];
    return m->real ? bind_temp(b, ELEM_FLOAT, (size_t)bind_count(y)) : bind_value(b, y);
}

/* Gemm's C as it is; [channels] of a convolution is [channels, 1, 1]. */
static Type bias_type(Arena *a, const Node *n, Type bias) {
    int spatial = n->def->family == FAMILY_CONVOLUTION ? n->out[0]->type.rank - 2 : 0;
    Dim *dims = NEW_ARRAY(a, Dim, bias.rank + spatial);
    memcpy(dims, bias.dims, (size_t)bias.rank * sizeof *dims);
    for (int i = 0; i < spatial; i++)
        dims[bias.rank + i] = dim_of(1);
    return type_tensor(ELEM_FLOAT, bias.rank + spatial, dims);
}

/* -1 after saying why not. */
static int scaled_bias(Binder *b, const Node *n, const Value *bias, float beta) {
    const Tensor *t = value_data(bias);
    if (type_is_quantized(bias->type) || bias->type.elem != ELEM_FLOAT)
        return bind_unsupported(b, n, "its bias is not float") - 1;
    if (beta == 1.0f)
        return bind_value(b, bias);
    if (!t || !t->data)
        return bind_unsupported(b, n, "its bias is computed, and scaled by beta") - 1;
    float *scaled = NEW_ARRAY(binder_arena(b), float, t->count);
    for (size_t i = 0; i < t->count; i++)
        scaled[i] = beta * (float)tensor_float(t, i);
    return bind_const(b, ELEM_FLOAT, t->count, scaled, "bias");
}

bool mac_finish(Binder *b, const Node *n, const Mac *m, float beta, int from) {
    if (!m->real)
        return true;
    int add = scaled_bias(b, n, m->real, beta), to = bind_value(b, n->out[0]);
    if (add < 0)
        return false;
    Type y = n->out[0]->type;
    Broadcast s = bind_broadcast(y, bias_type(binder_arena(b), n, m->real->type), y);
    if (!bind_binary(b, n, "add", ELEM_FLOAT, s, (int[]){from, add, to}))
        return false;
    bind_in_place(b, 0);
    return true;
}
