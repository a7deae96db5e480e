/* ai.onnx has no QGemm, and QLinearMatMul has no bias: adding one afterwards would round twice. A
 * convolution with a window of one is the same sum, bias included:
 *   y[N,M] = Flatten(QLinearConv(Unsqueeze(x[N,K]), w[M,K,1,1], b[M])) */
#include "ir/later.h"
#include "passes/lower/lower.h"

typedef struct Gemm {
    int64_t k, m;
    bool trans_b;
    const Quant *x, *w, *y;
    Value *bias;
} Gemm;

static bool is_byte(const Quant *q) {
    return q && q->kind == QUANT_PARAMS && elem_bits(q->storage) == 8 &&
           q->expressed == ELEM_FLOAT && q->scale_type == ELEM_FLOAT;
}

static bool read(const Lower *l, const Node *n, Gemm *g) {
    if (!node_is(n, "Gemm") || node_int(n, "transA", 0) || node_float(n, "alpha", 1.0F) != 1.0F ||
        node_float(n, "beta", 1.0F) != 1.0F)
        return false;
    const Value *w = n->in[1];
    g->trans_b = node_int(n, "transB", 0) != 0;
    g->x = lower_quant(l, n->in[0]);
    g->w = lower_quant(l, w);
    g->y = lower_quant(l, n->out[0]);
    g->bias = node_input(n, 2);
    if (!value_is_const(w) || w->data->rank != 2 || n->in[0]->type.rank != 2 || !is_byte(g->x) ||
        !is_byte(g->w) || !is_byte(g->y) || g->w->n_axes > 1 || g->y->has_range ||
        !quant_is_per_tensor(g->x) || !quant_is_per_tensor(g->y))
        return false;
    g->m = w->data->dims[!g->trans_b];
    g->k = w->data->dims[g->trans_b];
    if (g->w->n_axes && (g->w->axis[0] != !g->trans_b || g->w->block[0] > 1))
        return false;
    const Quant *b = g->bias ? lower_quant(l, g->bias) : NULL;
    return !g->bias || (b && b->storage == ELEM_INT32 && value_is_const(g->bias) &&
                        g->bias->data->count == (size_t)g->m);
}

/* The same constant, its channels first, in the shape that a convolution wants. */
static Value *reshaped(Lower *l, const Value *v, int rank, const int64_t *dims, int64_t rows,
                       int64_t columns, bool transpose) {
    const Tensor *t = v->data;
    uint8_t *bytes;
    later_make(l->b.m, v->data);
    Tensor *to = tensor_new(l->b.a, t->elem, rank, dims, &bytes);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            elem_store_int(t->elem, bytes, (size_t)(i * columns + j),
                           tensor_int(t, (size_t)(transpose ? j * rows + i : i * columns + j)));
    Quant *q = quant_copy(l->b.a, lower_quant(l, v));
    q->axis[0] = 0;
    return build_from(&l->b, v, "_conv", integer_type(tensor_type(l->b.a, to), q, true), to);
}

static Type matrix_of_pixels(Lower *l, Type t, const Quant *q) {
    Dim *dims = NEW_ARRAY(l->b.a, Dim, 4);
    memcpy(dims, t.dims, 2 * sizeof *dims);
    dims[2].value = dims[3].value = 1;
    return integer_type(type_tensor(q->storage, 4, dims), q, true);
}

static Value *unsqueeze(Lower *l, Node *at, Value *x, const Quant *q, Type t) {
    static const int64_t axes[] = {2, 3};
    Node *n = build_axes(&l->b, at, "Unsqueeze", x, axes, 2);
    return build_before(&l->b, at, n, x->name, "_pixels", matrix_of_pixels(l, t, q));
}

bool lower_gemm_as_conv(Lower *l, Node *n) {
    Gemm g;
    if (!read(l, n, &g))
        return false;
    Value *y = n->out[0], *x = n->in[0];
    Value *u = unsqueeze(l, n, lower_ints(l, x), g.x, x->type);
    Str name = lower_quant_name(l, n);
    Value *w = reshaped(l, n->in[1], 4, (const int64_t[]){g.m, g.k, 1, 1}, g.m, g.k, !g.trans_b);
    QuantParams px = quant_constants(&l->b, g.x, x->type, base_name(x->name));
    QuantParams pw = quant_constants(&l->b, w->type.quant, w->type, base_name(n->in[1]->name));
    QuantParams py = quant_constants(&l->b, g.y, y->type, base_name(y->name));
    Value *bias = g.bias ? reshaped(l, g.bias, 1, &g.m, 1, g.m, false) : NULL;
    Node *conv =
        build_node(&l->b, n, "QLinearConv", name,
                   OPERANDS(u, px.scale, px.zp, w, pw.scale, pw.zp, py.scale, py.zp, bias));
    Value *pixels = build_before(&l->b, n, conv, base_name(y->name), "_pixels",
                                 matrix_of_pixels(l, y->type, g.y));
    Node *f = build_node(&l->b, n, "Flatten", STR_NONE, OPERANDS(pixels));
    build_in_place(&l->b, n, f);
    lower_result(l, f, 0);
    return true;
}
