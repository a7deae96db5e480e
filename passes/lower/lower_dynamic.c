/* Products of integers whose input has parameters computed at run time, for ONNX:
 *
 *   ai.onnx         DynamicQuantizeLinear; MatMulInteger or ConvInteger, Cast, Mul by the product
 *                   of the scales, Add of the bias
 *   com.microsoft   MatMulIntegerToFloat, DynamicQuantizeMatMul where nobody else reads the
 *                   integers; with -emit=qop for onnxruntime
 *
 * A Gemm's alpha goes into the scales, its beta into the bias, its transposed weights are stored
 * the other way around. */
#include "ir/later.h"
#include "passes/lower/lower.h"

typedef struct Product {
    Node *n;
    Value *x, *w,
        *bias; /* x: the integers that DynamicQuantizeLinear made; bias: a float constant */
    Node *dynamic;
    Value *scale, *zp; /* constants of w */
    Value *y;
    bool conv;
} Product;

void lower_dynamic_quantize(Lower *l, Node *n) {
    Value *x = n->in[0], *y = n->out[0];
    Str base = base_name(y->name);
    Node *to = node_new(n->graph, STR_NONE, STR("DynamicQuantizeLinear"), 1, 3);
    to->name = n->name;
    to->loc = n->loc;
    node_from(to, n, l->b.pass);
    to->in[0] = x;
    node_take_result(to, 0, y);
    node_add_output(to, 1, derived_name(&l->b, base, "_scale"),
                    type_fixed(l->b.a, ELEM_FLOAT, 0, NULL));
    node_add_output(to, 2, derived_name(&l->b, base, "_zero_point"),
                    type_fixed(l->b.a, ELEM_UINT8, 0, NULL));
    node_insert_before(n, to);
    node_remove(n);
    op_resolve(to, l->b.d);
    Type t = real_type(y->type);
    t.elem = ELEM_UINT8;
    l->types[y->id] = t;
    l->ints[y->id] = y;
}

/* ---- constants ---- */

/* A matrix the other way around, and no element narrower than a byte. */
static Value *weight_of(Lower *l, const Node *n, const Value *v) {
    bool turn = node_int(n, "transB", 0);
    Tensor *t = v->data;
    ElemType e = elem_is_signed(t->elem) ? ELEM_INT8 : ELEM_UINT8;
    if (!turn && e == t->elem)
        return lower_ints(l, (Value *)v);
    later_make(l->b.m, t);
    Tensor *to = turn ? tensor_transposed(l->b.a, t) : t;
    to = tensor_as(l->b.a, to, e);
    return build_from(&l->b, v, turn ? "_transposed" : "_bytes", tensor_type(l->b.a, to), to);
}

/* [channels], or [channels, 1, 1] where they are multiplied onto the result of a convolution. */
static Value *scale_of(Lower *l, const Product *p, const Value *w, const Quant *q) {
    float alpha = node_float(p->n, "alpha", 1.0F);
    float *scale = NEW_ARRAY(l->b.a, float, q->n_scale);
    int64_t dims[MAX_RANK] = {(int64_t)q->n_scale, 1, 1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < q->n_scale; i++)
        scale[i] = alpha * quant_scale(q, i);
    int rank = q->n_axes == 0 ? 0 : p->conv ? w->data->rank - 1 : 1;
    return build_floats(&l->b, base_name(w->name), "_scale", ELEM_FLOAT, rank, dims, scale);
}

/* One for all where they are equal: onnxruntime's ConvInteger knows no other. */
static Value *zero_point_of(Lower *l, const Value *w, const Quant *q, ElemType e) {
    uint8_t *zp = arena_alloc(l->b.a, q->n_zp + 1);
    bool same = true;
    zp[0] = (uint8_t)quant_zp(q, 0);
    for (size_t i = 0; i < q->n_zp; i++) {
        zp[i] = (uint8_t)quant_zp(q, i);
        same = same && zp[i] == zp[0];
    }
    int64_t n = (int64_t)q->n_zp;
    return build_const(&l->b, base_name(w->name), "_zero_point", e, !same, &n, zp);
}

static Value *bias_of(Lower *l, const Product *p, const Value *bias) {
    float beta = node_float(p->n, "beta", 1.0F);
    const Tensor *t = bias->data;
    if (!p->conv && beta == 1.0F)
        return (Value *)bias;
    float *v = NEW_ARRAY(l->b.a, float, t->count);
    for (size_t i = 0; i < t->count; i++)
        v[i] = beta * (float)tensor_float(t, i);
    int64_t dims[MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
    int rank = p->conv ? p->w->type.rank - 1 : t->rank;
    return build_floats(&l->b, bias->name, p->conv ? "_channels" : "_scaled", ELEM_FLOAT, rank,
                        dims, v);
}

/* ---- nodes ---- */

static Value *step(Lower *l, const Product *p, const char *op, Value *a, Value *b, ElemType e) {
    Type t = p->y->type;
    t.elem = e;
    return build_step(&l->b, p->n, op, OPERANDS(a, b), t, p->y->name);
}

static void lower_standard(Lower *l, Product *p) {
    Node *n =
        build_node(&l->b, p->n, p->conv ? "ConvInteger" : "MatMulInteger",
                   lower_quant_name(l, p->n), OPERANDS(p->x, p->w, p->dynamic->out[2], p->zp));
    if (p->conv) {
        n->n_attrs = p->n->n_attrs;
        n->attrs = arena_copy(l->b.a, p->n->attrs, p->n->n_attrs * sizeof *p->n->attrs);
    }
    Type t = p->y->type;
    t.elem = ELEM_INT32;
    Value *sums = build_before(&l->b, p->n, n, p->y->name, "_integer", t);
    Value *real = step(l, p, "Cast", sums, NULL, ELEM_FLOAT);
    Value *scale = step(l, p, "Mul", p->dynamic->out[1], p->scale, ELEM_FLOAT);
    scale->name = derived_name(&l->b, p->y->name, "_scales");
    scale->type = p->scale->type;
    Value *y = step(l, p, "Mul", real, scale, ELEM_FLOAT);
    if (p->bias)
        y = step(l, p, "Add", y, p->bias, ELEM_FLOAT);
    node_take_result(y->def, 0, p->y);
    node_remove(p->n);
}

static void lower_microsoft(Lower *l, Product *p) {
    bool alone = uses_only_node(l->uses, p->n->in[0]) == p->n;
    Str name = lower_quant_name(l, p->n);
    Node *n = alone ? build_node(&l->b, p->n, "DynamicQuantizeMatMul", name,
                                 OPERANDS(p->dynamic->in[0], p->w, p->scale, p->zp, p->bias))
                    : build_node(&l->b, p->n, "MatMulIntegerToFloat", name,
                                 OPERANDS(p->x, p->w, p->dynamic->out[1], p->scale,
                                          p->dynamic->out[2], p->zp, p->bias));
    n->domain = STR("com.microsoft");
    module_import_microsoft(l->b.m);
    if (alone) {
        node_absorb(n, p->dynamic, l->b.pass);
        node_remove(p->dynamic);
    }
    build_in_place(&l->b, p->n, n);
}

/* ---- which form ---- */

static bool is_row(const Value *v, int64_t n) {
    return v && value_is_const(v) && v->data->elem == ELEM_FLOAT && v->data->rank == 1 &&
           v->data->dims[0] == n;
}

bool lower_dynamic(Lower *l, Node *n) {
    if (lower_dynamic_form(l, n))
        return true;
    const Quant *q =
        n->def && n->def->quant.mac.takes_dynamic && n->n_in ? lower_quant(l, n->in[0]) : NULL;
    if (!q || q->kind != QUANT_DYNAMIC)
        return false;
    Value *w = n->in[n->def->quant.mac.weight], *bias = node_input(n, 2);
    Product p = {.n = n, .x = lower_ints(l, n->in[0]), .y = n->out[0], .conv = node_is(n, "Conv")};
    p.dynamic = p.x->def;
    const Quant *wq = lower_quant(l, w);
    p.w = weight_of(l, n, w);
    p.scale = scale_of(l, &p, w, wq);
    p.zp = zero_point_of(l, w, wq, p.w->data->elem);
    p.bias = bias ? bias_of(l, &p, bias) : NULL;
    int64_t columns = p.w->data->dims[p.w->data->rank - 1];
    bool fused = l->qop && target_has_microsoft(l->c->target) && !p.conv && p.w->data->rank == 2 &&
                 (!p.bias || is_row(p.bias, columns));
    if (fused)
        lower_microsoft(l, &p);
    else
        lower_standard(l, &p);
    return true;
}

/* ---- MatMul, Add of a constant row: com.microsoft's operators do both ---- */

static bool takes_bias(const Node *n) {
    return n && ((node_is_in(n, "com.microsoft", "DynamicQuantizeMatMul") && n->n_in == 4) ||
                 (node_is_in(n, "com.microsoft", "MatMulIntegerToFloat") && n->n_in == 6 &&
                  n->in[2]->def && node_is(n->in[2]->def, "DynamicQuantizeLinear")));
}

static void merge_adds(Graph *g, void *ctx) {
    const Uses *u = ctx;
    FOR_NODES(n, g) {
        const Use *use;
        for (int i = 0; i < 2 && node_is(n, "Add") && n->n_in == 2; i++) {
            Node *product = n->in[i]->def;
            if (!takes_bias(product) || product->graph != g || uses_of(u, n->in[i], &use) != 1 ||
                !is_row(n->in[1 - i], product->in[1]->type.dims[1].value))
                continue;
            node_add_input(product, n->in[1 - i]);
            node_absorb(product, n, "lower-qop");
            product->out[0] = n->out[0];
            product->out[0]->def = product;
            node_remove(n);
            break;
        }
    }
}

void lower_dynamic_bias(Module *m) {
    Uses *u = uses_new(m);
    module_each_graph(m, merge_adds, u);
}
