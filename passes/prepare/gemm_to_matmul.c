/* Gemm with constant weights becomes MatMul and, where it has a bias, Add in float: what recipes
 * are about. transB and alpha go into the weights, beta into the bias. On quantized types the Add
 * computes on float, and a QuantizeLinear stands behind it where the Gemm's result was integers. */
#include <math.h>

#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

static const char PASS_NAME[] = "gemm-to-matmul";

typedef struct Split {
    PassContext *c;
    QuantBuild b;
    Arena *arena;
} Split;

/* NULL where the node can be taken apart, else why not. */
static const char *refusal(const Node *n) {
    const Value *w = n->in[1], *b = node_input(n, 2);
    float alpha = node_float(n, "alpha", 1.0F);
    if (node_int(n, "transA", 0))
        return "recipes are about MatMul, and transA has no place there";
    if (!value_is_const(w) || w->type.tilde || w->data->rank != 2)
        return "recipes are about MatMul by constant weights";
    if (type_is_quantized(w->type)) {
        const Quant *q = w->type.quant;
        if (q->kind != QUANT_PARAMS || (alpha != 1.0F && !(alpha > 0)))
            return "its alpha cannot become part of the scales of its weights";
        for (size_t i = 0; i < q->n_scale; i++)
            if (!isnormal(alpha * quant_scale(q, i)))
                return "its alpha cannot become part of the scales of its weights";
    }
    if (b && (b->type.tilde || !value_is_const(b) ||
              (type_is_quantized(b->type) && b->type.quant->kind != QUANT_PARAMS)))
        return "its bias is computed";
    return b && !type_is_quantized(b->type) && b->data->elem != ELEM_FLOAT ? "its bias is not float"
                                                                           : NULL;
}

/* ---- constants ---- */

/* Axes 0 and 1 change places; scales take up alpha. */
static Quant *weight_type(Split *s, const Value *w, bool turn, float alpha) {
    Quant *q = quant_copy(s->arena, w->type.quant);
    float *scale = NEW_ARRAY(s->arena, float, q->n_scale);
    for (size_t i = 0; i < q->n_scale; i++)
        scale[i] = alpha * quant_scale(q, i);
    q->scale = scale;
    if (turn && q->n_axes == 1)
        q->axis[0] = 1 - q->axis[0];
    return q;
}

static Value *weight_of(Split *s, const Node *n) {
    Value *w = n->in[1];
    float alpha = node_float(n, "alpha", 1.0F);
    bool turn = node_int(n, "transB", 0), quantized = type_is_quantized(w->type);
    if (!turn && alpha == 1.0F)
        return w;
    const Tensor *t = turn ? tensor_transposed(s->arena, w->data) : w->data;
    if (!quantized && alpha != 1.0F) {
        float *out = NEW_ARRAY(s->arena, float, t->count);
        for (size_t i = 0; i < t->count; i++)
            out[i] = alpha * (float)tensor_float(t, i);
        t = tensor_of(s->arena, ELEM_FLOAT, t->rank, t->dims, out);
    }
    Type type = tensor_type(s->arena, t);
    Quant *q = quantized ? weight_type(s, w, turn, alpha) : NULL;
    if (q)
        type = type_quantized(type, q);
    Value *v = build_from(&s->b, w, turn ? "_T" : "_scaled", type, (Tensor *)t);
    if (q && v->type.quant == q) {
        q->alias = v->name;
        module_add_quant(s->b.m, q);
    }
    v->loc = w->loc;
    return v;
}

static Value *float_bias(Split *s, const Node *n) {
    Value *b = node_input(n, 2);
    float beta = node_float(n, "beta", 1.0F);
    if (!b || beta == 0)
        return NULL;
    const Tensor *t = b->data;
    if (type_is_quantized(b->type))
        t = const_dequantize(s->arena, t, b->type.quant);
    else if (beta == 1.0F)
        return b;
    float *out;
    Value *v = edit_new_floats(n->graph, s->b.names, b->name, t->rank, t->dims, &out);
    for (size_t i = 0; i < t->count; i++)
        out[i] = beta * (float)tensor_float(t, i);
    value_from(v, b, PASS_NAME);
    v->loc = b->loc;
    return v;
}

/* ---- nodes ---- */

/* A node behind `at` that yields what `at` yielded, which gets a new float value instead. */
static Node *behind(Split *s, Node *at, const char *op, const char *suffix) {
    Value *y = at->out[0];
    Type t = y->type;
    if (type_is_quantized(t))
        t = type_tensor(t.quant->expressed, t.rank, t.dims);
    else if (t.tilde)
        t = type_tensor(t.elem, t.rank, t.dims);
    Node *n = node_new(at->graph, STR_NONE, str_from(op), 1, 1);
    node_from(n, at, PASS_NAME);
    node_follow(at, 0, n, derived_name(&s->b, y->name, suffix), t);
    return n;
}

static void split(Split *s, Node *n) {
    Value *bias = float_bias(s, n);
    n->in[1] = weight_of(s, n);
    node_becomes(n, PASS_NAME);
    n->op = STR("MatMul");
    n->n_in = 2;
    n->n_attrs = 0;
    op_resolve(n, s->c->d);
    if (!bias)
        return;
    if (type_is_quantized(n->out[0]->type))
        op_resolve(behind(s, n, "QuantizeLinear", "_sum"), s->c->d);
    Node *add = behind(s, n, "Add", "_MatMul");
    node_add_input(add, bias);
    op_resolve(add, s->c->d);
}

static void split_graph(Graph *g, void *ctx) {
    Split *s = ctx;
    FOR_NODES(n, g) {
        if (!node_is(n, "Gemm") || n->n_out != 1 || !n->out[0] || !n->in[0] || !n->in[1])
            continue;
        const char *why = refusal(n);
        if (why)
            pass_remark(s->c, n, "%s", why);
        else
            split(s, n);
    }
}

bool pass_gemm_to_matmul(Module *m, PassContext *c) {
    Split s = {c, quant_build_new(m, c, PASS_NAME), m->arena};
    module_each_graph(m, split_graph, &s);
    edit_sweep(m);
    return true;
}
